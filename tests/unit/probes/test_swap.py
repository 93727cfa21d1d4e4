"""The key `swap` of generation probes: versions of a user's own prompts, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.audits.documents import anonymizer
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import GenerationProbe

TERMS = "terms: [[christian, muslim], [church, mosque]]"
FAITH = f"{{faith: {{unmarked: christian, marked: [muslim], {TERMS}}}}}"
LOG = "text\n" + "".join(f"Our church number {number} needs a roof. Ideas?\n" for number in range(10)) + "And now?\n"


def load(
    folder: Path, swap: str = FAITH, prompts: str = "prompts: {file: log.csv}", more: str = "", log: str = LOG
) -> GenerationProbe:
    (folder / "log.csv").write_text(log, encoding="utf-8")
    path = folder / "probe.yaml"
    path.write_text(f"kind: generation\n{prompts}\nswap: {swap}\n{more}\naudits: {{jsd: }}\n", encoding="utf-8")
    probe = probes.load(path, kinds.schemas(), root=folder)
    assert isinstance(probe, GenerationProbe)
    return probe


def errors(folder: Path, *args: str, **others: str) -> list[str]:
    with pytest.raises(ProbeError) as error:
        load(folder, *args, **others)
    return str(error.value).splitlines()


def texts(probe: GenerationProbe) -> list[str]:
    return [prompt.request.prompt for prompt in probe.prompts()]


def test_each_prompt_with_a_term_is_a_stratum_with_a_version_for_every_group(tmp_path: Path) -> None:
    probe = load(tmp_path)
    assert texts(probe)[:2] == ["Our church number 0 needs a roof. Ideas?", "Our mosque number 0 needs a roof. Ideas?"]
    assert len(list(probe.prompts())) == 20
    assert len({prompt.labels["prompt"] for prompt in probe.prompts()}) == 10
    assert [(each.row.line, each.reason) for each in probe.swapped.left_out] == [(12, "the prompt names no group")]
    assert probe.trials == 1


def test_the_sample_counts_prompts_that_can_be_swapped_and_does_not_depend_on_the_order_of_the_file(
    tmp_path: Path,
) -> None:
    rows = [f"Question {number}?\n" + f"The church of street {number}?\n" for number in range(30)]
    prompts = "prompts: {file: log.csv, sample: 20, seed: 1}"
    drawn = load(tmp_path, prompts=prompts, log="text\n" + "".join(rows))
    again = load(tmp_path, prompts=prompts, log="text\n" + "".join(reversed(rows)))
    assert len(drawn.swapped.prompts) == 20
    assert {*drawn.templates} == {*again.templates}
    assert len(drawn.swapped.left_out) + drawn.swapped.not_examined == 40


def test_prompts_in_the_probe_are_sent_as_written_with_braces(tmp_path: Path) -> None:
    probe = load(tmp_path, prompts="prompt: ['A {church}?', 'Near the {{mosque}}']", more="trials: 8")
    assert [(prompt.request.prompt, prompt.labels) for prompt in probe.prompts() if prompt.trial == 0] == [
        ("A {church}?", {"faith": "christian", "prompt": "1"}),
        ("A {mosque}?", {"faith": "muslim", "prompt": "1"}),
        ("Near the {{church}}", {"faith": "christian", "prompt": "2"}),
        ("Near the {{mosque}}", {"faith": "muslim", "prompt": "2"}),
    ]


def test_terms_can_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text("muslim,christian,note\nmosque,church,\nimam,priest,\n", encoding="utf-8")
    swap = "{faith: {unmarked: christian, marked: [muslim], terms: {file: terms.csv}}}"
    assert texts(load(tmp_path, swap))[1] == "Our mosque number 0 needs a roof. Ideas?"


def test_a_placebo_is_made_from_the_version_of_the_unmarked_group(tmp_path: Path) -> None:
    swap = FAITH.replace(TERMS, f"{TERMS}, placebo: [[church, chapel]]")
    log = LOG.replace("church number 3", "mosque number 3").replace("church number 4", "christian number 4")
    probe = load(tmp_path, swap, log=log)
    probe_of_placebo, labels = probe.placebo({"faith": "muslim", "scorer": "tone"}) or (None, {})
    assert probe_of_placebo is not None
    assert labels == {"faith": "placebo", "scorer": "tone"}
    assert len(list(probe_of_placebo.prompts())) == 18  # without the prompt whose term has no placebo
    assert [prompt.request.prompt for prompt in probe_of_placebo.prompts() if " 3 " in prompt.request.prompt] == [
        "Our church number 3 needs a roof. Ideas?",
        "Our chapel number 3 needs a roof. Ideas?",
    ]
    unmarked = {prompt.request for prompt in probe_of_placebo.prompts() if prompt.labels["faith"] == "christian"}
    assert unmarked < {prompt.request for prompt in probe.prompts()}  # the answers of the unmarked group are shared
    assert load(tmp_path, FAITH.replace(TERMS, f"{TERMS}, placebo: false")).placebo({"faith": "muslim"}) is None


def test_swapped_terms_are_removed_from_answers(tmp_path: Path) -> None:
    swap = FAITH.replace(TERMS, f"{TERMS}, placebo: [[church, prayer house]]")
    words = anonymizer(load(tmp_path, swap)).words("The mosque, the church and the prayer house: a house for a prayer.")
    assert words == ["the", "the", "and", "the", "a", "house", "for", "a", "prayer"]


def test_a_changed_list_changes_the_fingerprint_of_its_groups_only(tmp_path: Path) -> None:
    def fingerprint(group: str, terms: str) -> dict[str, str]:
        swap = f"{{faith: {{unmarked: christian, marked: [muslim, jewish], terms: [{terms}]}}}}"
        return load(tmp_path, swap).fingerprint({"faith": group})

    first, other = "[church, mosque, synagogue], [pew, rug, bench]", "[church, mosque, temple], [pew, rug, bench]"
    turned = "[pew, rug, bench], [church, mosque, synagogue]"
    assert fingerprint("muslim", first) == fingerprint("muslim", other) == fingerprint("muslim", turned)
    changed = {
        name for name, part in fingerprint("jewish", first).items() if part != fingerprint("jewish", other)[name]
    }
    assert changed == {"swap list"}


def test_prompts_of_runs_are_compared_only_if_all_versions_are_the_same(tmp_path: Path) -> None:
    before = load(tmp_path)
    after = load(tmp_path, log=LOG.replace("number 3 needs", "number 3 still needs").replace("number 4", "no. 4"))
    assert len({*before.templates} & {*after.templates}) == 8


@pytest.mark.parametrize(
    ("swap", "more", "found"),
    [
        (FAITH.replace("]]", "], [chapel, mosque]]"), "", "3:102: 'mosque' of muslim in row 3"),
        (FAITH.replace("church, mosque", "church, mosque, temple"), "", "3:84: row 2 has 3 terms"),
        ("{faith: {marked: [muslim], terms: [[a, b]]}}", "", "`swap.faith.unmarked` is missing"),
        ("{faith: {unmarked: a, marked: [placebo], terms: [[a, b]]}}", "", "'placebo' is the name of the placebo swap"),
        ("{faith: {unmarked: a, marked: [A], terms: [[a, b]]}}", "", "'A' is already the unmarked value"),
        ("{a: {}, b: {}}", "", "`swap` must have at most 1 entries"),
        ("{prompt: {}}", "", "an axis cannot be called 'prompt'"),
        ("genders", "", "3:7: There is no built-in list 'genders' for the language 'en': did you mean 'gender'?"),
        ("gender", "language: pl", "for the language 'pl': write your own list: `swap: {gender: {unmarked: …"),
        (FAITH, "axes: {a: {unmarked: b, marked: [c]}}", "4:1: `swap` gives the probe its axis: remove `axes`"),
        (FAITH, "turns: [Why?]", "4:1: terms are swapped only in `prompt`"),
        (FAITH, "variants: {short: {prompt: Hi}}", "a variant of this probe can change only `system`"),
    ],
)
def test_wrong_swaps_are_located(tmp_path: Path, swap: str, more: str, found: str) -> None:
    messages = errors(tmp_path, swap, more=more)
    assert any(found in message for message in messages), messages
    assert all(message.startswith("probe.yaml:") for message in messages)


@pytest.mark.parametrize(
    ("prompts", "log", "found"),
    [
        (
            "prompts: {file: log.csv}",
            "text\nHello\nBye\n",
            ["log.csv:2: no swap: the prompt names no group", "log.csv:3: no swap: the prompt names no group"],
        ),
        (
            "prompts: {file: log.csv, sample: 11}",
            LOG,
            [
                (
                    "log.csv:1: a swap is possible in only 10 of 11 prompts: set `sample` to at most 10, or "
                    "add prompts. Left out: the prompt names no group (1)"
                )
            ],
        ),
        (
            "prompts: {file: log.csv}",
            "text\nA church\n",
            [
                (
                    "2:1: each group gets only 1 answer, and audits of texts need 8: raise `trials`, or add prompts in "
                    "which a swap is possible"
                )
            ],
        ),
        ("prompt: [A church, A house]", LOG, ["2:20: no swap: the prompt names no group"]),
        (
            "prompt: 'What should {faith} people read at church?'",
            LOG,
            [
                (
                    "2:22: with `swap`, prompts have no placeholders: write a term of one group in place of {faith}, "
                    "or write `axes` in place of `swap`"
                )
            ],
        ),
    ],
)
def test_prompts_in_which_nothing_can_be_swapped_are_located(
    tmp_path: Path, prompts: str, log: str, found: list[str]
) -> None:
    messages = errors(tmp_path, prompts=prompts, log=log, more="trials: 8" if prompts.startswith("prompt:") else "")
    for message, part in zip(messages, found, strict=True):
        assert part in message


def test_a_file_of_terms_without_the_column_of_a_group_is_located(tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text("christian,moslim\nchurch,mosque\n", encoding="utf-8")
    swap = "{faith: {unmarked: christian, marked: [muslim], terms: {file: terms.csv}}}"
    (message,) = errors(tmp_path, swap)
    assert message == (
        "probe.yaml:3:62: terms.csv:1: no column 'muslim' with the terms of this group: did you mean 'moslim'?"
    )
    (tmp_path / "terms.csv").write_text("christian,muslim\nchurch,mosque\nchapel,mosque\n", encoding="utf-8")
    assert "terms.csv:3: 'mosque' of muslim in row 2 is also a term" in errors(tmp_path, swap)[0]


def test_a_probe_needs_axes_or_a_swap(tmp_path: Path) -> None:
    path = tmp_path / "probe.yaml"
    path.write_text("kind: generation\nprompt: Hello\naudits: {jsd: }\n", encoding="utf-8")
    with pytest.raises(
        ProbeError, match="`axes` is missing: write the attributes by which groups differ, or `swap: gender`"
    ):
        probes.load(path, kinds.schemas())


def test_a_built_in_list_compares_its_first_two_groups_and_removes_the_terms_of_the_prompts(tmp_path: Path) -> None:
    log = "text\n" + "".join(f"John lives in street {number}. What does he need?\n" for number in range(8))
    probe = load(tmp_path, "gender", log=log)
    assert (probe.axes["gender"].unmarked, probe.axes["gender"].marked) == ("male", ("female",))
    versions = probe.swapped.prompts[0].versions
    assert (versions["male"], versions["female"].split()[0]) == (
        "John lives in street 0. What does he need?",
        "Patricia",
    )
    other = versions["placebo"].split()[0]
    assert other not in ("John", "Patricia")
    words = anonymizer(probe).words(f"She, Patricia, and {other} need what John needs: his own street.")
    assert words == ["and", "need", "what", "needs", "own", "street"]
    three = load(tmp_path, "{gender: {marked: [female, neutral]}}", log=log)
    assert texts(three)[2].endswith("What do they need?")


def test_a_name_that_is_also_a_word_is_removed_only_as_a_name(tmp_path: Path) -> None:
    log = "text\n" + "".join(f"My friend Holly lives in street {number}. What does she need?\n" for number in range(8))
    probe = load(tmp_path, "gender", log=log)
    assert "Holly" in probe.swapped_terms
    assert anonymizer(probe).words("The holly is green. Ask Holly.") == ["the", "holly", "is", "green", "ask"]


def test_reasons_are_counted_without_the_words_of_the_prompts(tmp_path: Path) -> None:
    log = LOG + "A church for Rome\nA church and a mosque\n"
    assert load(tmp_path, log=log).swapped.reasons == {
        "the prompt names no group": 1,
        "the prompt names several groups: christian, muslim": 1,
    }
    log = "text\n" + "".join(f"He lives in street {number}.\n" for number in range(8)) + "I met her last year.\n"
    found = load(tmp_path, "gender", log=log + "We gave her credit.\n").swapped
    assert [*found.reasons.values()] == [2], found.reasons
