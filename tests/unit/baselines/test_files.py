"""Baseline files: what is written is read again, in bytes that a diff can show, and nothing is lost on the way."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.baselines.entries import Entry, Row, answer_set_for, read_answers, write_answers
from pytest_fairness.baselines.files import Baseline, fingerprints, read_baseline, update_baseline
from pytest_fairness.errors import BaselineError
from pytest_fairness.records import Measurement
from pytest_fairness.resources import replace_file
from pytest_fairness.version import __version__

GROUPS = ("White", "Black", "Asian")
ROOT = Path(__file__).parents[3]


def entry(value: float = 0.018, *, target: str = "openai:model", date: str = "2026-01-02T03:04:05Z") -> Entry:
    return Entry.measured(
        Measurement(value, (-0.25, 0.75), 0.005, 0.2, {"White": 15, "Black": 14}, {"Black": 1}),
        target=target,
        sampling={"temperature": 1.0, "max_tokens": 900},
        fingerprint=fingerprints({"prompt": ["Imagine a {race} person."]}),
        date=date,
    )


def rows(run: str = "first", groups: tuple[str, ...] = GROUPS, trials: int = 3) -> list[Row]:
    return [Row({"race": group}, trial, f"{run} {group} {trial}") for group in groups for trial in range(trials)]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def written(folder: Path, entries: dict[str, Entry] | None = None, answers: list[Row] | None = None) -> Baseline:
    update_baseline(folder, "products", entries or {"jsd[race=Black]": entry()}, rows() if answers is None else answers)
    baseline = read_baseline(folder, "products")
    assert baseline is not None
    return baseline


def test_no_baseline(tmp_path: Path) -> None:
    assert read_baseline(tmp_path / "nowhere", "products") is None


def test_what_is_written_is_read(tmp_path: Path) -> None:
    baseline = written(tmp_path / "made" / "on the way")
    (item,) = baseline.items.items()
    assert item[0] == "jsd[race=Black]"
    assert item[1].answer_set is not None
    assert item[1] == replace(entry(), answer_set=item[1].answer_set).sealed(item[1].answer_set)
    assert baseline.answers(item[1].answer_set) == sorted(rows(), key=lambda row: (row.labels["race"], row.trial))


def test_summary_is_made_for_a_diff(tmp_path: Path) -> None:
    sixth = replace(entry(), value=0.123456789, interval=(-0.0, 1e-9 / 3), standard_error=1234567.8)
    written(tmp_path, {"svm[Straße=東京]": sixth, "jsd[race=Black]": entry()})
    text = (tmp_path / "products.json").read_text("utf-8")
    assert text.endswith("}\n")
    assert "svm[Straße=東京]" in text
    assert '"value": 0.123457' in text
    assert '"standard_error": 1234570.0' in text
    assert [line.strip() for line in text.splitlines() if "interval" in line or "e-10" in line] == [
        '"interval": [',
        '"interval": [',
        "3.33333e-10",
    ]
    assert "-0.0" not in text
    data = json.loads(text)
    assert data["schema"] == 1
    assert data["probe"] == "products"
    assert text == json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    assert list(data["items"]) == ["jsd[race=Black]", "svm[Straße=東京]"]
    assert list(data["items"]["jsd[race=Black]"])[:4] == ["value", "interval", "n", "missing"]
    assert set(data["items"]["jsd[race=Black]"]) == {
        "answers",
        "seal",
        "value",
        "interval",
        "standard_error",
        "n",
        "missing",
        "target",
        "sampling",
        "shape",
        "tool_version",
        "date",
        "generation",
    }
    assert data["items"]["jsd[race=Black]"]["tool_version"] == __version__


def test_equal_answers_give_equal_bytes(tmp_path: Path) -> None:
    written(tmp_path / "one", answers=rows())
    written(tmp_path / "two", answers=[*reversed(rows()), *rows()])
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_many_answers_are_compressed_to_equal_bytes(tmp_path: Path) -> None:
    many = [replace(row, text=f"{row.text} " * 20_000) for row in rows()]
    written(tmp_path)
    written(tmp_path, answers=many)
    assert sorted(content(tmp_path)) == ["products.json", "products.responses.jsonl.gz"]
    header = (tmp_path / "products.responses.jsonl.gz").read_bytes()[:10]
    assert header[3] == 0, "a flag of the header is set: it holds a file name"
    assert header[4:8] == b"\0\0\0\0", "the header holds a time"
    read = read_baseline(tmp_path, "products")
    assert read is not None
    assert read.size == len(many)
    written(tmp_path)
    assert sorted(content(tmp_path)) == ["products.json", "products.responses.jsonl"]


def test_a_file_of_an_earlier_version_is_read_and_written_as_text(tmp_path: Path) -> None:
    baseline = written(tmp_path)
    (name,) = {entry.answer_set for entry in baseline.items.values()}
    lines = [{"generation": name, **json.loads(line)} for line in text_of_answers(tmp_path).splitlines()[1:]]
    before = content(tmp_path)
    (tmp_path / "products.responses.jsonl").unlink()
    (tmp_path / "products.responses.jsonl.gz").write_bytes(gz("\n".join(map(json.dumps, lines)) + "\n"))
    read = read_baseline(tmp_path, "products")
    assert read is not None
    assert read.answers(name) == baseline.answers(name)
    written(tmp_path)
    assert content(tmp_path) == before


def test_both_files_of_answers_that_a_killed_run_left_are_read(tmp_path: Path) -> None:
    baseline = written(tmp_path)
    text = tmp_path / "products.responses.jsonl"
    kept = text.read_bytes()
    again = written(tmp_path, answers=rows("second"))
    (tmp_path / "products.responses.jsonl.gz").write_bytes(gzip.compress(kept))
    read = read_baseline(tmp_path, "products")
    assert read is not None
    for each in (baseline, again):
        for entry in each.items.values():
            assert read.answers(entry.answer_set)


def test_bytes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    # Another hash seed gives sets and dictionaries of sets another order.
    code = (
        "import sys; from pathlib import Path; from tests.unit.baselines.test_files import *\n"
        "written(Path(sys.argv[1]), {'b': entry(), 'a': entry()})"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], check=True, env=environment, cwd=ROOT)
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_rows_are_sorted_json_lines(tmp_path: Path) -> None:
    written(tmp_path)
    first, *lines = map(json.loads, text_of_answers(tmp_path).splitlines())
    assert list(first) == ["answer_set"]
    assert [(line["labels"]["race"], line["trial"]) for line in lines] == [
        (group, trial) for group in sorted(GROUPS) for trial in range(3)
    ]
    assert {tuple(sorted(line)) for line in lines} == {("labels", "text", "trial")}


@given(
    st.lists(
        st.builds(
            Row,
            st.dictionaries(st.text(st.characters()), st.text(st.characters()), max_size=2),
            st.integers(0, 3),
            st.none() | st.text(st.characters()),
        ),
        unique_by=lambda row: (tuple(sorted(row.labels.items())), row.trial),
        min_size=1,
    )
)
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, given_rows: list[Row]) -> None:
    path = tmp_path_factory.mktemp("answers") / "x.responses.jsonl"
    answer_set = answer_set_for(given_rows, {})
    assert answer_set is not None
    write_answers(path, {answer_set: given_rows})
    first = path.read_bytes()
    read = read_answers(path)
    assert read is not None
    write_answers(path, read)
    assert path.read_bytes() == first
    for row in given_rows:
        assert row in read[answer_set]


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\u2028\x85\r\n", "😀", "\N{RIGHT-TO-LEFT OVERRIDE}", ""])
def test_awkward_texts_survive(tmp_path: Path, text: str) -> None:
    baseline = written(tmp_path, {f"jsd[race={text}]": entry(target=text)}, [Row({"race": text}, 0, text)])
    (item,) = baseline.items
    assert item == f"jsd[race={text}]"
    assert baseline.items[item].target == text
    assert baseline.answers(baseline.items[item].answer_set) == [Row({"race": text}, 0, text)]


def test_rebaseline_on_the_same_answers_changes_no_byte(tmp_path: Path) -> None:
    written(tmp_path)
    before = content(tmp_path)
    written(tmp_path, {"jsd[race=Black]": entry(date="2030-01-01T00:00:00Z")})
    assert content(tmp_path) == before


def test_the_date_is_that_of_the_content(tmp_path: Path) -> None:
    written(tmp_path, {"a": entry(), "b": entry()})
    later = "2030-01-01T00:00:00Z"
    baseline = written(tmp_path, {"a": entry(0.5, date=later), "b": entry(date=later)})
    assert baseline.items["a"].date == later
    assert baseline.items["b"].date == entry().date


def test_the_same_answers_compressed_elsewhere_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "products.responses.jsonl.gz"
    many = [replace(row, text=f"{row.text} " * 20_000) for row in rows()]
    written(tmp_path, answers=many)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), compresslevel=1, mtime=7))
    before = content(tmp_path)
    written(tmp_path, answers=many)
    assert content(tmp_path) == before


def test_partial_rebaseline_leaves_the_other_items_alone(tmp_path: Path) -> None:
    old = written(tmp_path, {"a": entry(0.1), "b": entry(0.2)})
    new = written(tmp_path, {"b": entry(0.3)}, rows("second", GROUPS[:2]))
    assert new.items["a"] == old.items["a"]
    assert new.items["b"].value == 0.3
    assert new.items["a"].answer_set != new.items["b"].answer_set
    assert new.answers(new.items["a"].answer_set) == old.answers(old.items["a"].answer_set)
    assert [row.text for row in new.answers(new.items["b"].answer_set)] == [
        f"second {group} {trial}" for group in ("Black", "White") for trial in range(3)
    ]


def test_partial_rebaseline_reuses_an_answer_set_that_holds_its_answers(tmp_path: Path) -> None:
    old = written(tmp_path, {"a": entry(0.1), "b": entry(0.2)})
    new = written(tmp_path, {"b": entry(0.3)}, rows(groups=GROUPS[:2]))
    assert new.items["b"].answer_set == old.items["a"].answer_set
    assert new.answer_sets is not None
    assert len(new.answer_sets) == 1


def test_an_answer_set_with_more_trials_is_not_reused(tmp_path: Path) -> None:
    written(tmp_path, {"a": entry(0.1), "b": entry(0.2)}, rows(trials=3))
    new = written(tmp_path, {"b": entry(0.3)}, rows(trials=2))
    assert len(new.answers(new.items["b"].answer_set)) == 2 * len(GROUPS)


def test_full_rebaseline_has_one_answer_set_and_no_memory(tmp_path: Path) -> None:
    written(tmp_path / "old", {"a": entry(0.1), "b": entry(0.2)})
    written(tmp_path / "old", {"b": entry(0.3)}, rows("second"))
    for folder in ("old", "new"):
        written(tmp_path / folder, {"a": entry(0.4), "b": entry(0.5)}, rows("third", GROUPS[:2]))
    assert content(tmp_path / "old") == content(tmp_path / "new")
    answer_sets = read_answers(tmp_path / "old" / "products.responses.jsonl")
    assert answer_sets is not None
    assert len(answer_sets) == 1


def test_entries_are_removed_with_their_answers(tmp_path: Path) -> None:
    written(tmp_path, {"a": entry(), "gone": entry()})
    written(tmp_path, {"a": entry(0.4)}, rows("second"))
    update_baseline(tmp_path, "products", {}, [], remove=["gone"])
    baseline = read_baseline(tmp_path, "products")
    assert baseline is not None
    assert list(baseline.items) == ["a"]
    assert baseline.answer_sets is not None
    assert list(baseline.answer_sets) == [baseline.items["a"].answer_set]
    update_baseline(tmp_path, "products", {}, [], remove=["a"])
    assert content(tmp_path) == {}


def test_without_answers(tmp_path: Path) -> None:
    update_baseline(tmp_path, "products", {"a": entry()}, rows(), keep_answers=False)
    assert list(content(tmp_path)) == ["products.json"]
    baseline = read_baseline(tmp_path, "products")
    assert baseline is not None
    assert baseline.items["a"].answer_set is None
    assert baseline.answers(None) == []


def test_answers_are_dropped_when_they_are_no_longer_kept(tmp_path: Path) -> None:
    old = written(tmp_path, {"a": entry(), "b": entry()})
    update_baseline(tmp_path, "products", {"a": entry()}, rows(), keep_answers=False)
    half = read_baseline(tmp_path, "products")
    assert half is not None
    assert half.items["a"].answer_set is None
    assert half.answers(half.items["b"].answer_set) == old.answers(old.items["b"].answer_set)
    update_baseline(tmp_path, "products", {"b": entry()}, rows(), keep_answers=False)
    assert list(content(tmp_path)) == ["products.json"]


def test_absent_answers_leave_the_stored_numbers(tmp_path: Path) -> None:
    baseline = written(tmp_path, {"a": entry(), "b": entry()})
    baseline.answers_path.unlink()
    read = read_baseline(tmp_path, "products")
    assert read is not None
    assert read.answers(read.items["a"].answer_set) == []
    again = written(tmp_path, {"b": entry(0.3)}, rows("second"))
    assert again.items["a"].answer_set is None
    assert again.items["a"].value == 0.018
    assert len(again.answers(again.items["b"].answer_set)) == len(rows())


def test_killed_while_writing_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the last file that was replaced, the baseline is the old one or the new one, with its answers."""
    seen = []

    def stop_after(number: int) -> Callable[[Path, bytes], None]:
        done: list[Path] = []

        def replace(path: Path, data: bytes) -> None:
            if len(done) == number:
                raise KeyboardInterrupt
            done.append(path)
            replace_file(path, data)

        return replace

    for number in range(4):
        folder = tmp_path / str(number)
        written(folder, {"a": entry(0.1)}, rows("first"))
        monkeypatch.setattr("pytest_fairness.baselines.files.replace_file", stop := stop_after(number))
        monkeypatch.setattr("pytest_fairness.baselines.entries.replace_file", stop)
        try:
            update_baseline(folder, "products", {"a": entry(0.2)}, rows("second"))
            finished = True
        except KeyboardInterrupt:
            finished = False
        monkeypatch.undo()
        baseline = read_baseline(folder, "products")
        assert baseline is not None
        texts = {str(row.text).split()[0] for row in baseline.answers(baseline.items["a"].answer_set)}
        assert (baseline.items["a"].value, texts) in [(0.1, {"first"}), (0.2, {"second"})]
        seen.append((finished, baseline.items["a"].value))
    assert seen == [(False, 0.1), (False, 0.1), (False, 0.2), (True, 0.2)]


def test_conflicting_answers_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two different answers of trial 0"):
        written(tmp_path, answers=[Row({"race": "Black"}, 0, "one"), Row({"race": "Black"}, 0, "other")])
    assert content(tmp_path) == {}


def test_a_value_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(
        BaselineError, match=r"products\.json was not written, because its new content would be invalid.*value"
    ):
        written(tmp_path, {"a": entry(float("nan"))})
    assert content(tmp_path) == {}


def test_an_unbounded_interval_is_left_out(tmp_path: Path) -> None:
    baseline = written(tmp_path, {"a": replace(entry(), interval=(0.0, float("inf")))})
    assert baseline.items["a"].interval is None


FAULTY_SUMMARIES = {
    "not JSON": ('{\n "schema": 1,,\n}', r"products\.json:2: is not JSON"),
    "empty": ("", r"products\.json:1: is not JSON"),
    "conflict": ('{\n<<<<<<< HEAD\n "a": 1\n', r"products\.json:2: holds an unresolved merge conflict"),
    "a list": ("[]", '"schema" is not 1'),
    "no schema": ("{}", '"schema" is not 1'),
    "no items": ('{"schema": 1, "probe": "products"}', "items: Field required"),
    "no value": ('{"schema": 1, "probe": "p", "items": {"a": {}}}', r"items\.a\.value: Field required"),
    "twice": ('{"schema": 1, "probe": "p", "items": {}, "items": {}}', "the key 'items' occurs twice"),
    "not a number": ('{"schema": 1, "probe": "p", "items": {"a": {"value": NaN}}}', "NaN is not a finite number"),
    "further": ('{"schema": 1, "probe": "p", "items": {}, "more": 1}', "more: Unknown field"),
}


@pytest.mark.parametrize(("text", "message"), FAULTY_SUMMARIES.values(), ids=FAULTY_SUMMARIES.keys())
def test_a_faulty_summary_is_an_error_and_stays(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "products.json").write_text(text, "utf-8")
    with pytest.raises(BaselineError, match=message) as raised:
        read_baseline(tmp_path, "products")
    assert "git checkout" in str(raised.value)
    assert "--fairness-rebaseline" in str(raised.value)
    assert "\n" not in str(raised.value)
    with pytest.raises(BaselineError, match=message):
        update_baseline(tmp_path, "products", {"a": entry()}, rows())
    assert content(tmp_path) == {"products.json": text.encode()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("value", None),
        ("value", "0.1"),
        ("value", True),
        ("interval", [1.0]),
        ("standard_error", -1),
        ("interval", "wide"),
        ("n", {"White": 1.5}),
        ("n", [1]),
        ("target", None),
        ("shape", {"prompt": 1}),
        ("note", "accepted"),
    ],
)
def test_a_faulty_entry_is_named(tmp_path: Path, name: str, value: object) -> None:
    written(tmp_path)
    path = tmp_path / "products.json"
    data = json.loads(path.read_text())
    data["items"]["jsd[race=Black]"][name] = value
    path.write_text(json.dumps(data))
    with pytest.raises(BaselineError, match=rf"products\.json: is not a baseline.*jsd\[race=Black\].*{name}"):
        read_baseline(tmp_path, "products")


def test_a_newer_schema_asks_for_an_upgrade(tmp_path: Path) -> None:
    (tmp_path / "products.json").write_text('{"schema": 2, "whatever": []}')
    with pytest.raises(BaselineError, match=r"schema 2 of a newer pytest-fairness.*Upgrade"):
        read_baseline(tmp_path, "products")


def test_a_summary_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "products.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(BaselineError, match=r"products\.json: is not UTF-8"):
        read_baseline(tmp_path, "products")


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = written(tmp_path).summary_path
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_baseline(tmp_path, "products") is not None


def text_of_answers(folder: Path) -> str:
    return (folder / "products.responses.jsonl").read_text("utf-8")


def gz(text: str) -> bytes:
    return gzip.compress(text.encode("utf-8"))


FAULTY_ANSWERS = {
    "not gzip": (b"version 1", r"jsonl\.gz: is not a complete gzip file"),
    "truncated": (gz("x" * 9999)[:-9], r"jsonl\.gz: is not a complete gzip file"),
    "corrupt": (gz("x" * 99)[:12] + b"\xff" * 20, r"jsonl\.gz: is not a complete gzip file"),
    "not UTF-8": (gzip.compress(b"\xff"), "the text is not UTF-8"),
    "not JSON": (gz("\n{"), r"jsonl\.gz:2: is not JSON"),
    "not a mapping": (gz("[1]"), r"jsonl\.gz:1: is not an answer"),
    "no labels": (gz('{"generation": "a", "trial": 0, "text": ""}'), "labels: Field required"),
    "number as text": (gz('{"generation": "a", "labels": {}, "trial": 0, "text": 1}'), r"jsonl\.gz:1: .*text"),
    "no answer set": (gz('{"labels": {}, "trial": 0, "text": ""}'), "no line before it names its answer set"),
    "merged by git": (gz('<<<<<<< HEAD\n{"answer_set": "a"}'), r"jsonl\.gz:1: holds an unresolved merge conflict"),
    "edited": (
        gz('{"generation": "a", "labels": {}, "trial": 0, "text": "x"}'),
        "were changed after they were written",
    ),
}


@pytest.mark.parametrize(("data", "message"), FAULTY_ANSWERS.values(), ids=FAULTY_ANSWERS.keys())
def test_faulty_answers_are_an_error_and_stay(tmp_path: Path, data: bytes, message: str) -> None:
    written(tmp_path)
    (tmp_path / "products.responses.jsonl.gz").write_bytes(data)
    before = content(tmp_path)
    baseline = read_baseline(tmp_path, "products")
    assert baseline is not None, "the summary can be read without the answers"
    with pytest.raises(BaselineError, match=message) as raised:
        baseline.answers(baseline.items["jsd[race=Black]"].answer_set)
    assert "git checkout" in str(raised.value)
    with pytest.raises(BaselineError, match=message):
        update_baseline(tmp_path, "products", {"a": entry()}, rows("second"))
    assert content(tmp_path) == before


def test_files_of_two_commits_do_not_go_together(tmp_path: Path) -> None:
    old = written(tmp_path).summary_path.read_bytes()
    written(tmp_path, {"jsd[race=Black]": entry(0.5)}, rows("second")).summary_path.write_bytes(old)
    baseline = read_baseline(tmp_path, "products")
    assert baseline is not None
    with pytest.raises(BaselineError, match=r"the answer set .* is missing.*same commit"):
        baseline.answers(baseline.items["jsd[race=Black]"].answer_set)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../up", "a/b", "a\\b", "/etc/passwd", "a\0b", "a\nb", ".hidden", "C:x"]
)
def test_a_name_stays_in_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "baselines"
    with pytest.raises(BaselineError, match="named"):
        update_baseline(folder, name, {"a": entry()}, rows())
    with pytest.raises(BaselineError, match="named"):
        read_baseline(folder, name)
    assert content(tmp_path) == {}


def test_a_target_can_be_part_of_the_name(tmp_path: Path) -> None:
    update_baseline(tmp_path, "products@small", {"a": entry()}, [])
    assert list(content(tmp_path)) == ["products@small.json"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "baselines").write_text("a file")
    with pytest.raises(BaselineError, match="cannot be"):
        update_baseline(tmp_path / "baselines", "products", {"a": entry()}, rows())


def test_a_full_disk_leaves_the_old_baseline(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="only Unix limits the size of files")
    written(tmp_path)
    before = content(tmp_path)
    # A file size limit makes the kernel refuse what a full disk would.
    code = (
        "import resource, signal, sys; from pathlib import Path; from tests.unit.baselines.test_files import *\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "try: written(Path(sys.argv[1]), {'a': entry(0.5)}, rows('second'))\n"
        "except BaselineError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert "cannot be written" in run.stdout
    assert content(tmp_path) == before
