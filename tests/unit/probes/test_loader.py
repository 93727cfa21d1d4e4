from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_fairness import probes
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import identity_terms, load, parse
from pytest_fairness.records import Sampling
from tests.support.probe_files import KINDS, PRODUCTS, SMALL, Classifier, errors, read

LITERAL = "a literal brace is written {{ or }}"

WHOLE_IN_QUOTES = "put the whole text in quotes, because it begins like a mapping, a list or a quoted text"


def test_every_key_of_a_probe_is_read() -> None:
    probe = read(PRODUCTS, Path("/project/probes/products.yaml"))
    assert (probe.kind, probe.name, probe.trials, probe.alpha) == ("generation", "products", 15, 0.05)
    assert probe.templates[""].startswith("Imagine you are recommending products for a {race} {gender}. List 10")
    assert not probe.templates[""].endswith("\n")
    assert probe.axes["race"].unmarked == "White"
    assert probe.axes["gender"].values == ("man", "woman", "nonbinary person")
    assert probe.sampling == Sampling(temperature=1.0, max_tokens=900)
    assert (probe.answer.format, probe.anonymize) == ("json", ("extra", "terms"))
    assert list(probe.audits) == ["svm", "jsd"]
    assert probe.audits["svm"] == Classifier(limit=0.8, tolerance=0.15)
    assert (probe.system, probe.description, probe.responses, probe.variants, probe.marks) == (None, None, None, {}, ())
    assert probe.source.path == Path("/project/probes/products.yaml")


def test_defaults() -> None:
    probe = read(SMALL)
    assert (probe.name, probe.trials, probe.answer.format, probe.anonymize) == ("small", 15, "text", ())
    assert probe.sampling == Sampling()


def test_audits_keep_the_order_of_the_file() -> None:
    assert list(read(SMALL.replace("{jsd: }", "{jsd: {}, svm: }")).audits) == ["jsd", "svm"]
    assert list(read(SMALL.replace("{jsd: }", "{svm: , jsd: {}}")).audits) == ["svm", "jsd"]


def test_loading_a_file_names_it_relative_to_the_root(tmp_path: Path) -> None:
    file = tmp_path / "probes" / "letters.yml"
    file.parent.mkdir()
    file.write_text(SMALL)
    assert load(file, KINDS, root=tmp_path).name == "letters"
    file.write_text(SMALL + "trails: 5\n")
    with pytest.raises(ProbeError) as caught:
        load(file, KINDS, root=tmp_path)
    assert str(caught.value) == "probes/letters.yml:5:1: unknown key 'trails': did you mean 'trials'?"
    with pytest.raises(ProbeError, match=re.escape(f"{file.as_posix()}:5:1: unknown key")):
        load(file, KINDS)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match=r"missing\.yaml:1:1: cannot be read .No such file"):
        load(tmp_path / "missing.yaml", KINDS, root=tmp_path)
    (tmp_path / "misting.yaml").touch()
    with pytest.raises(ProbeError, match=r"missing\.yaml:1:1: cannot be read .*: did you mean 'misting.yaml'"):
        load(tmp_path / "missing.yaml", KINDS, root=tmp_path)
    with pytest.raises(ProbeError, match=r"cannot be read .Is a directory"):
        load(tmp_path, KINDS)


def test_a_misspelt_data_file_is_named_with_the_file_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").touch()
    probe = tmp_path / "letters.yaml"
    probe.write_text("kind: generation\naudits: {jsd: {}}\nresponses: {file: answer.csv}\n", "utf-8")
    with pytest.raises(ProbeError, match=r"no file 'answer.csv' in the probe's folder: did you mean 'answers.csv'\?"):
        load(probe, KINDS, root=tmp_path)


def test_all_errors_of_a_file_are_reported_at_once_by_position() -> None:
    text = """\
kind: generatoin
name: a/b
prompt:
  - >
    Hello {rase} and {race.__class__}
    and {
  - no
axes:
  race:   {unmarked: no, marked: [Asian, asian, 5, "", null, true], markd: 1}
  gender: {unmarked: man, marked: []}
  prompt: {marked: [x]}
  a-b: 5
trials: "2"
trials: 3
sampling: {temperature: -1, max_tokens: 0.5, top_p: .inf}
answer: {format: jsn}
anonymize: true
alpha: 1
system: off
marks: nightly
variants: {x: {}, "z": {prompt: [1]}}
responses: {file: ../x.csv, columns: {rac: x}, strata: [text, a, a]}
audits:
  svm: {limit: x, tolerence: 0.15, features: count, seed: [1]}
  jds:
  snsr:
  jsd: {skip: no, gate: strct, tolerance: -1}
"""
    assert errors(text) == [
        "1:7: unknown kind 'generatoin': did you mean 'generation'?",
        (
            "2:7: `name` must consist of letters, digits, '.', '_' and '-', and begin with a letter or digit, "
            "to be part of file names"
        ),
        "5:11: unknown placeholder '{rase}': did you mean 'race'?",
        f"5:22: '{{race.__class__}}' is not a placeholder: only a name may stand between braces; {LITERAL}",
        f"6:9: a prompt contains a single '{{': {LITERAL}",
        '7:5: `prompt[1]` must be text, but no without quotes is a boolean: write "no"',
        '9:22: `axes.race.unmarked` must be text, but no without quotes is a boolean: write "no"',
        "9:42: 'asian' is repeated: write each value of an axis once",
        '9:49: `axes.race.marked[2]` must be text, but 5 is a number: write "5"',
        "9:52: `axes.race.marked[3]` must be one line of text, and not empty",
        "9:56: `axes.race.marked[4]` must be text, but nothing is written",
        '9:62: `axes.race.marked[5]` must be text, but true without quotes is a boolean: write "true"',
        "9:69: unknown key 'markd' in `axes.race`: did you mean 'marked'?",
        "10:35: `axes.gender.marked` must not be empty",
        "11:3: an axis cannot be called 'prompt', because answers have a label of this name: rename the axis",
        "11:11: `axes.prompt.unmarked` is missing: the value with which the marked values are compared",
        "12:3: the name 'a-b' must consist of letters, digits and '_', and not begin with a digit",
        "12:8: `axes.a-b` must be a mapping, not 5",
        "13:9: `trials` must be a whole number, not the text '2'",
        "14:1: the key 'trials' is already used in line 13: remove one of the two keys",
        "15:25: `sampling.temperature` must be at least 0, not -1",
        "15:41: `sampling.max_tokens` must be a whole number, not 0.5",
        "15:53: .inf is not a valid number: write a finite number",
        "16:18: `answer.format` must be one of text, list, json, not the text 'jsn': did you mean 'json'?",
        "17:12: `anonymize` must be a list or false or a mapping, not true",
        "18:8: `alpha` must be less than 1, not 1",
        '19:9: `system` must be text, but off without quotes is a boolean: write "off"',
        "20:8: `marks` must be a list, not the text 'nightly'",
        "21:1: a probe with `responses` sends no requests: remove `variants` or `responses`",
        "21:15: a variant must change `system` or `prompt`, and this variant changes neither",
        '21:34: `variants.z.prompt[0]` must be text, but 1 is a number: write "1"',
        "22:19: `responses.file`: '../x.csv' lies outside the probe's folder: put it beside the probe file",
        "22:39: 'rac' is not a column that this probe reads: did you mean 'race'?",
        "22:57: the probe already uses the column 'text': remove it from `strata`",
        "22:66: the probe already uses the column 'a': remove it from `strata`",
        "24:16: `audits.svm.limit` must be a number, not the text 'x'",
        "24:19: unknown key 'tolerence' in `audits.svm`: did you mean 'tolerance'?",
        "24:46: `audits.svm.features` must be one of counts, tfidf, not the text 'count': did you mean 'counts'?",
        "24:59: `audits.svm.seed` must be a whole number or text, not a list",
        "25:3: unknown audit 'jds': did you mean 'jsd'?",
        "26:3: unknown audit 'snsr': it belongs to probes of the kind 'recommendation'",
        "27:15: `audits.jsd.skip` must be the reason as text, not no",
        (
            "27:25: `audits.jsd.gate` must be one of significant, bound, strict, point, not the text 'strct': did you "
            "mean 'strict'?"
        ),
        "27:43: `audits.jsd.tolerance` must be at least 0, not -1",
    ]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("anonymize: []", "5:12: `anonymize` must not be empty"),
        ("anonymize: [1]", '5:13: `anonymize[0]` must be text, but 1 is a number: write "1"'),
        ("anonymize: text", "5:12: `anonymize` must be a list or false or a mapping, not the text 'text'"),
        ("anonymize: {nams: true}", "5:13: unknown key 'nams' in `anonymize`: did you mean 'names'?"),
        ("anonymize: {names: false}", "5:20: `anonymize.names` must be"),
        ("anonymize: {names: []}", "5:20: `anonymize.names` must not be empty"),
        (
            "anonymize: {names: [Emily, J.]}",
            "5:28: `anonymize.names[1]` must be a name with at least two letters",
        ),
        (
            "anonymize: {names: true, terms: [1]}",
            '5:34: `anonymize.terms[0]` must be text, but 1 is a number: write "1"',
        ),
        ("responses: {file: 5}", '5:19: `responses.file` must be text, but 5 is a number: write "5"'),
        ("responses: {file: a.csv}", "5:19: `responses.file`: there is no file 'a.csv' in the probe's folder"),
        ('responses: {file: "a\\0.csv"}', "5:19: `responses.file`: 'a\\x00.csv' is not a file that can be read"),
        (
            "responses: {file: /etc/passwd}",
            "5:19: `responses.file`: '/etc/passwd' lies outside the probe's folder: put it beside the probe file",
        ),
        ("responses: {}", "5:12: `responses.file` is missing: CSV (.csv), JSON Lines"),
        (
            "sampling: {seed: 99999999999999999999}",
            "5:18: `sampling.seed` must be at most 2147483647, not 99999999999999999999",
        ),
        ("sampling: {top_p: 1e999}", "5:19: 1e999 is not a valid number: write a finite number"),
        ("sampling: {top_p: 1.5}", "5:19: `sampling.top_p` must be at most 1, not 1.5"),
        ("sampling:", "5:10: `sampling` must be a mapping, not empty"),
        ("sampling: {temperatur: 1}", "5:12: unknown key 'temperatur' in `sampling`: did you mean 'temperature'?"),
        ("trials: 0", "5:9: `trials` must be at least 1, not 0"),
        ("trials: 2.0", "5:9: `trials` must be a whole number, not 2.0"),
        ("trials: true", "5:9: `trials` must be a whole number, not true"),
        ("trials: no", "5:9: `trials` must be a whole number, not no"),
        ("trials: 1_000", "5:9: `trials` must be a whole number, not the text '1_000'"),
        ("alpha: 0", "5:8: `alpha` must be greater than 0, not 0"),
        ("name: 2024", '5:7: `name` must be text, but 2024 is a number: write "2024"'),
        ("name: y", '5:7: `name` must be text, but y without quotes is a boolean: write "y"'),
        ("system: ''", "5:9: `system` must not be empty"),
        ("system: '  '", "5:9: `system` must not be empty"),
        ("marks: []", "5:8: `marks` must not be empty"),
        ("marks: [a b]", "5:9: `marks[0]` must consist of letters, digits and '_', and not begin with a digit"),
        ("variants: {}", "5:11: `variants` must not be empty"),
        ("variants: {a: {prompt: 'no {groop}'}}", "5:28: unknown placeholder '{groop}': did you mean 'group'?"),
        ("variants: {a: {prompt: nothing}}", "5:24: this prompt does not use the axis 'group': write {group} where"),
        ("axis: 5", "5:1: unknown key 'axis': did you mean 'axes'?"),
        ("skip: no", "5:1: unknown key 'skip': write it as a setting of an audit, such as `audits: {refusals: {skip"),
        ("zzz: 5", "5:1: unknown key 'zzz' (valid: kind, name, description"),
        ("prompt: again", "5:1: the key 'prompt' is already used in line 2: remove one of the two keys"),
        ("no: 1", '5:1: a key must be text, but no without quotes is a boolean: write "no"'),
        ("? [a]\n: 1", "5:3: a key must be a name, not a list or a mapping"),
        ("<<: {trials: 3}", "5:1: merge keys (`<<`) are not supported: write out the merged keys"),
        ("trials: !!int 5", "5:9: YAML tags are not supported: remove '!!int'"),
        (
            "x: !!python/object/apply:os.system [ls]",
            "5:4: YAML tags are not supported: remove '!!python/object/apply:os.system'",
        ),
        ('system: "\\ud83d"', "5:9: the text has half of a character (one surrogate): write the whole character"),
    ],
)
def test_an_error_is_reported_at_its_position(line: str, error: str) -> None:
    assert any(found.startswith(error) for found in errors(SMALL + line)), errors(SMALL + line)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "1:1: the file is empty; a probe begins with `kind:`"),
        ("# nothing\n", "1:1: the file is empty; a probe begins with `kind:`"),
        ("- a\n", "1:1: a probe is a mapping that begins with `kind:`, not a list"),
        ("text", "1:1: a probe is a mapping that begins with `kind:`, not a single value"),
        ("knid: generation", "1:1: unknown key 'knid': did you mean 'kind'?"),
        ("trials: 3", f"1:1: `kind` is missing: write the kind of the probe ({', '.join(KINDS)})"),
        ("kind: 5", f"1:7: `kind` must be the name of a kind of probe ({', '.join(KINDS)})"),
        ("kind: wholly-else", f"1:7: unknown kind 'wholly-else' (valid: {', '.join(KINDS)})"),
        (
            "kind: a\n---\nkind: b\n",
            "2:1: a probe file holds one document, but `---` begins another: move the other document to its own file",
        ),
        (
            "kind: 'a\n",
            "2:1: not valid YAML: found unexpected end of stream, while scanning a quoted scalar; close the",
        ),
        (
            "kind: a: b\n",
            "1:8: not valid YAML: mapping values are not allowed here; check the indentation, or put a text",
        ),
        ("kind: a\n\tb: c\n", "2:1: not valid YAML: found character '\\t' that cannot start any token"),
        (
            "kind: *a\n",
            "1:7: the alias *a has no anchor &a before it: write the value in place of the alias, or quote the text",
        ),
        ("a: &a [*a]\n", "1:8: the alias *a is inside its own anchor: remove the alias"),
        ("kind: a\nb: \x01\n", "2:4: the character U+0001 is not allowed in YAML"),
        ("[" * 100, "1:52: the file is nested more than 50 levels deep: use fewer levels"),
        (b"kind: a\nb: \xff\n", "2:4: not UTF-8 text: save the file in the encoding UTF-8"),
        ("kind: a".encode("utf-16"), "1:1: not UTF-8 text: save the file in the encoding UTF-8"),
        (b"#" * 1_000_001, "1:1: the probe file has more than 1,000,000 bytes: put data into a separate file"),
        ('kind: "\\UFFFFFFFF"', "1:5: not valid YAML"),
    ],
)
def test_an_unreadable_file_has_one_error(text: str | bytes, error: str) -> None:
    found = errors(text)
    assert len(found) == 1
    assert found[0].startswith(error)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("prompt: 'a\n", "close the quotation mark or bracket"),
        ("prompt: a: b\n", "check the indentation, or put a text that contains a colon in quotes"),
        ("kind: a\nprompt: {person} asks: why?\n", WHOLE_IN_QUOTES),
        ("prompt: {person}, why?\n", WHOLE_IN_QUOTES),
        ("prompt:\n  - {person} asks\n  - b\n", WHOLE_IN_QUOTES),
        ("prompt:\n  {{person}} asks: why?\n", WHOLE_IN_QUOTES),
        ("prompt: '{person}' asks\n", WHOLE_IN_QUOTES),
        ("prompt: *{person}*\n", "put the text in quotes"),
        ("kind: a\nprompt\nb: 2\n", "write a colon and a blank after the key, or put the text in quotes"),
        ("axes:\n\tb: c\n", "indent with blanks in place of tabs"),
        ("prompt: @b\n", "put the text in quotes"),
        ("axes: [a, b\nkind: c\n", "close the bracket, or put a comma between the values"),
        ("axes:\n  a: {}\n    b: c\n", "the keys of one mapping, and the dashes of one list, begin in the same column"),
    ],
)
def test_an_error_of_yaml_says_what_to_do(text: str, cure: str) -> None:
    (found,) = errors(text)
    assert found.endswith(cure)


def test_aliases_repeat_values_but_only_so_many() -> None:
    probe = read(
        SMALL.replace("{unmarked: man, marked: [woman]}", "{unmarked: &m man, marked: [woman]}") + "system: *m\n"
    )
    assert probe.system == "man"
    bomb = "a: &a [xxxxxxxx,xxxxxxxx]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert len(errors(bomb)) == 1
    assert "the values of the file's aliases have more than 1,000,000 characters" in errors(bomb)[0]


def test_quoted_booleans_are_text() -> None:
    probe = read(
        SMALL.replace("unmarked: man, marked: [woman]", "unmarked: 'yes', marked: ['no', \"off\", 'on', 'true']")
    )
    assert probe.axes["group"].values == ("yes", "no", "off", "on", "true")


@pytest.mark.parametrize(
    "value", ["12:30", "2024-01-31", "1_000", "0b11", "norway", "=", "1.2.3", "!!str no", "!!str 5"]
)
def test_values_that_only_yaml_1_1_converts_are_text(value: str) -> None:
    assert read(SMALL + f"description: {value}\n").description == value.removeprefix("!!str ")


@pytest.mark.parametrize("value", ["off", "no", "false", "False"])
def test_anonymize_can_be_turned_off(value: str) -> None:
    assert read(SMALL + f"anonymize: {value}\n").anonymize is False


def test_json_is_read_too() -> None:
    axes = '{"g": {"unmarked": "a", "marked": ["b"]}}'
    text = f'{{"kind": "generation", "prompt": "\\ud83d\\ude00 {{g}}", "axes": {axes}, "audits": {{"jsd": {{}}}}}}'
    assert read(text).templates == {"": "\N{GRINNING FACE} {g}"}


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    parse(b"\xef\xbb\xbf" + SMALL.encode(), Path("small.yaml"), KINDS)


def test_a_file_whose_name_cannot_name_a_baseline() -> None:
    with pytest.raises(
        ProbeError, match=r"my probe.yaml:1:1: the probe's file name 'my probe' cannot be the name of baseline files"
    ):
        parse(SMALL.encode(), Path("my probe.yaml"), KINDS)
    assert parse(SMALL.encode() + b"name: mine\n", Path("my probe.yaml"), KINDS).name == "mine"


def test_files_stay_in_the_probes_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.csv").write_text("text\n")
    folder = tmp_path / "probes"
    folder.mkdir()
    (folder / "inside.csv").write_text("text\n")
    (folder / "notes.txt").write_text("text\n")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    text = SMALL.replace("prompt: Describe a {group}.", "responses: {file: FILE}")
    loaded = parse(text.replace("FILE", "./inside.csv").encode(), folder / "p.yaml", KINDS)
    assert loaded.responses is not None
    assert loaded.responses.file == folder / "inside.csv"
    for name, reason in {
        "../outside.csv": "outside the probe's folder",
        "link.csv": "outside the probe's folder",
        str(folder / "inside.csv"): "outside the probe's folder",
        "notes.txt": "is not a file of answers",
        ".": "no file '.' in",
        "x" * 5000 + ".csv": "not a file that can be read",
    }.items():
        with pytest.raises(ProbeError, match=re.escape(reason)):
            parse(text.replace("FILE", name).encode(), folder / "p.yaml", KINDS)


def test_prompt_is_needed_unless_answers_are_there(tmp_path: Path) -> None:
    (error,) = errors(SMALL.replace("prompt: Describe a {group}.\n", ""))
    assert error.startswith("1:1: `prompt` is missing: write the question, `prompts` with a file, `messages`")
    (tmp_path / "a.csv").write_text("")
    text = SMALL.replace("prompt: Describe a {group}.", "prompt: free\nresponses: {file: a.csv}")
    assert parse(text.encode(), tmp_path / "p.yaml", KINDS).responses is not None


def test_every_axis_is_used_by_every_prompt() -> None:
    two = SMALL.replace("{group: {", "{age: {unmarked: old, marked: [young]}, group: {")
    assert errors(two) == ["3:8: the axis 'age' is used in no prompt: write {age} where its values belong"]
    some = two.replace("prompt: Describe a {group}.", "prompt: ['A {group} is', '{age} {group}']")
    assert errors(some) == ["2:10: this prompt does not use the axis 'age': write {age} where its values belong"]


def test_a_misspelt_placeholder_is_one_error() -> None:
    assert errors(SMALL.replace("{group}", "{groop}")) == ["2:20: unknown placeholder '{groop}': did you mean 'group'?"]


def test_a_marked_value_equal_to_the_unmarked_one_is_an_error() -> None:
    assert errors(SMALL.replace("[woman]", "[woman, MAN]")) == [
        "3:47: 'MAN' is already the unmarked value: remove it from `marked`"
    ]


def test_too_many_prompts_are_an_error() -> None:
    many = ", ".join(f"v{i}" for i in range(99))
    text = SMALL.replace("[woman]", f"[{many}]") + "trials: 10001\n"
    assert errors(text) == ["3:1: the values, prompts and trials make more than 1,000,000 prompts: reduce one of them"]
    read(text.replace("10001", "10000"))


def test_names_are_exported_and_lazy() -> None:
    assert sorted(probes.__all__) == probes.__all__
    for name in probes.__all__:
        assert getattr(probes, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = probes.nothing


PIECES = [
    *"abc{}[]:,-&*!|>'\"#%@`?~ \n\t0.",
    "kind",
    "generation",
    ": ",
    "- ",
    "\n  ",
    "axes",
    "unmarked",
    "prompt",
    "&a ",
    "*a",
]


@given(
    st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=60).map(lambda parts: "".join(parts).encode())
)
@example(b"%YAML 1.1\n---\nkind: a")
@example(b"a: !<x> y")
@example(b"\xef\xbb\xbf")
@example(b"0" * 5000)
@example(b"a: " + b"9" * 5000)
def test_any_bytes_give_a_probe_or_errors_with_positions(content: bytes) -> None:
    try:
        parse(content, Path("p.yaml"), KINDS)
    except ProbeError as error:
        for line in str(error).split("\n"):
            assert re.match(r"p\.yaml:[1-9]\d*:[1-9]\d*: \S", line)


@given(st.data())
def test_a_damaged_probe_gives_a_probe_or_errors_with_positions(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(PRODUCTS)))
    end = data.draw(st.integers(start, min(len(PRODUCTS), start + 30)))
    text = PRODUCTS[:start] + data.draw(st.sampled_from([*PIECES, "", "no", "!!x "])) + PRODUCTS[end:]
    try:
        parse(text.encode(), Path("p.yaml"), KINDS)
    except ProbeError as error:
        positions = [tuple(map(int, line.split(":")[1:3])) for line in str(error).split("\n")]
        assert positions == sorted(positions)
        assert all(line <= text.count("\n") + 1 for line, _ in positions)


def test_first_names_are_a_packaged_list_or_the_probes_own() -> None:
    packaged, own = (
        read(SMALL + "anonymize: {names: true}\n"),
        read(SMALL + "anonymize: {terms: [hijab], names: [Zoë]}\n"),
    )
    assert {"emily", "lakisha", "priya", "wei", "hope", "jose"} <= packaged.removed_names
    assert not {"washington", "the", "and"} & packaged.removed_names
    assert (packaged.removed_terms, own.removed_terms, own.removed_names) == ((), ("hijab",), frozenset({"zoë", "zoe"}))
    shapes = [read(SMALL + text).fingerprint({})["anonymize"] for text in (
        "", "anonymize: [hijab]\n", "anonymize: {terms: [hijab]}\n", "anonymize: {names: true}\n",
        "anonymize: {names: [Zoë]}\n", "anonymize: {terms: [hijab], names: [Zoë]}\n", "anonymize: false\n",
    )]  # fmt: skip
    assert shapes[1] == shapes[2], "the same is removed, however it is written"
    assert len({*shapes}) == len(shapes) - 1
    assert "emily" not in packaged.model_dump_json(exclude={"audits"}), "a list of thousands is told by its digest"


def test_without_the_package_there_is_no_packaged_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_terms, "has_name_lists", lambda: False)
    (error,) = errors(SMALL + "anonymize: {names: true}\n")
    assert error.startswith("5:20: `anonymize.names`: the list of first names needs the package faker: pip install ")
    assert read(SMALL + "anonymize: {names: [Emily]}\n").removed_names == {"emily"}


@pytest.mark.parametrize(
    ("written", "number"), [("10%", "0.1"), ("'2.5 %'", "0.025"), ("'12,5 %'", "0.125"), ("100%", "1")]
)
def test_a_percentage_is_answered_with_its_number(written: str, number: str) -> None:
    found = errors(SMALL.replace("audits:", f"alpha: {written}\naudits:"))
    assert [message.rpartition(": ")[2] for message in found] == [f"write {number}"]


def test_a_placeholder_without_quotes_is_no_mapping() -> None:
    found = errors(SMALL.replace("Describe a {group}.", "{group}"))
    assert 'must be text, not a mapping: put the placeholder in quotes, "{group}"' in found[0]
