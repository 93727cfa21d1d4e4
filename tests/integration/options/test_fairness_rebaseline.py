"""`--fairness-rebaseline`: what is written, what is left alone, and how the items are judged meanwhile."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.support.projects import KIM, LOU, PROBE, THINGS_TABLE, Project, ini, says, shows

UNLIMITED = PROBE.replace("{limit: 0.5, gate: point}", "{gate: point}")


def entries(project: Project, name: str = "gifts") -> dict[str, dict[str, object]]:
    items: dict[str, dict[str, object]] = project.read(f"baselines/{name}.json")["items"]
    return items


def test_it_audits_and_writes_what_was_measured_with_its_answers(project: Project) -> None:
    project.probe(text=UNLIMITED)
    assert project.run("--fairness").parseoutcomes() == {"no": 2}, "no-baseline"
    result = project.run("--fairness-rebaseline")
    result.assert_outcomes(passed=2)
    assert shows(result, f"  {KIM}: none -> 0")
    assert set(entries(project)) == {KIM, LOU}
    assert entries(project)[KIM]["target"] == "python:app:polite"
    lines = (project.path / "baselines/gifts.responses.jsonl").read_bytes().splitlines()[1:]
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 30
    assert rows[0]["labels"] == {"name": "Alex"}
    project.run("--fairness").assert_outcomes(passed=2)


def test_a_change_fails_until_it_is_accepted(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.run("--fairness-rebaseline")
    result = project.run("--fairness", target="python:app:biased")
    result.assert_outcomes(passed=1, failed=1)
    assert shows(result, "Kim vs Alex: refusals of Kim 100%, before 0%; worse by 1 (allowed 0.1)")
    result = project.run("--fairness-rebaseline", target="python:app:biased")
    result.assert_outcomes(passed=2)
    assert shows(result, f"  {KIM}: 0 -> 1")
    project.run("--fairness", target="python:app:biased").assert_outcomes(passed=2)


def test_other_sampling_makes_a_baseline_stale_unless_the_probe_compares_it(project: Project) -> None:
    sampled = UNLIMITED.replace("trials:", "sampling: {temperature: 1.0, max_tokens: 200, seed: 1}\ntrials:")
    project.probe(text=sampled)
    project.run("--fairness-rebaseline").assert_outcomes(passed=2)
    project.probe(text=sampled.replace("seed: 1", "seed: 9"))
    project.run("--fairness").assert_outcomes(passed=2)
    changed = sampled.replace("temperature: 1.0, max_tokens: 200", "temperature: 0.7")
    project.probe(text=changed)
    result = project.run("--fairness")
    result.assert_outcomes(failed=2)
    assert says(result, "changed since the baseline was made: max_tokens 200 → not set, temperature 1.0 → 0.7")
    project.probe(text=changed + "compare_sampling: false\n")
    project.run("--fairness").assert_outcomes(passed=2)


def test_limits_hold_for_new_baselines(project: Project) -> None:
    project.probe()
    project.run("--fairness-rebaseline", target="python:app:biased").assert_outcomes(passed=1, failed=1)
    assert entries(project)[KIM]["value"] == 1.0
    project.run("--fairness", target="python:app:biased").assert_outcomes(passed=1, failed=1)


def test_only_selected_items_are_touched(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.run("--fairness-rebaseline")
    before = entries(project)
    project.run("--fairness-rebaseline", "-k", "Kim", target="python:app:biased").assert_outcomes(
        passed=1, deselected=1
    )
    after = entries(project)
    assert after[LOU] == before[LOU]
    assert after[KIM]["value"] == 1.0
    project.run("--fairness", target="python:app:biased").assert_outcomes(passed=2)


def test_an_item_that_errs_keeps_its_baseline(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.run("--fairness-rebaseline")
    before = (project.path / "baselines/gifts.json").read_bytes()
    project.run("--fairness-rebaseline", "--fairness-trials", "2").assert_outcomes(errors=2)
    assert (project.path / "baselines/gifts.json").read_bytes() == before


def test_rebaselining_the_same_answers_changes_no_byte(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.write("pytest.ini", ini(fairness_target_version="1"))
    files = [project.path / "baselines" / name for name in ("gifts.json", "gifts.responses.jsonl")]
    project.run("--fairness-rebaseline")
    before = [file.read_bytes() for file in files]
    project.run("--fairness-rebaseline")
    assert [file.read_bytes() for file in files] == before
    assert len(project.calls()) == 30


def test_baselines_without_an_item_are_reported_and_removed_with_the_whole_probe_only(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.run("--fairness-rebaseline")
    project.probe(text=UNLIMITED.replace("marked: [Kim, Lou]", "marked: [Kim, Max]"))
    result = project.run("--fairness")
    assert shows(result, f"that belong to no item of the probe: {LOU}. To remove them, rebaseline the whole probe:")
    project.run("--fairness-rebaseline", "-k", "Max")
    assert LOU in entries(project)
    result = project.run("--fairness-rebaseline")
    assert shows(result, f"baselines of gifts that belong to no item of the probe: {LOU} (removed)")
    assert set(entries(project)) == {KIM, "refusals[name=Max]"}


def test_a_probe_that_reads_differently_makes_its_baseline_stale(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.run("--fairness-rebaseline")
    project.probe(text=UNLIMITED.replace("recommend to", "suggest to"))
    result = project.run("--fairness")
    result.assert_outcomes(failed=2)
    assert says(result, "Kim vs Alex: 0; changed since the baseline was made: prompt")
    assert shows(result, "pytest --fairness-rebaseline")


def test_a_broken_baseline_is_an_error_that_names_the_file_and_loses_nothing(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.probe("probes/other.yaml", PROBE)
    project.write("baselines/gifts.json", "{")
    for option in ("--fairness", "--fairness-rebaseline"):
        result = project.run(option)
        assert result.parseoutcomes()["passed"] >= 2
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert shows(result, "baselines/gifts.json:1: ")
        assert "Traceback" not in result.stdout.str()
        assert (project.path / "baselines/gifts.json").read_text() == "{"


def test_answers_are_left_out_where_the_ini_says_so(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.write("pytest.ini", ini(fairness_baseline_responses="false"))
    project.run("--fairness-rebaseline").assert_outcomes(passed=2)
    assert [path.name for path in (project.path / "baselines").iterdir()] == ["gifts.json"]
    result = project.run("--fairness", "-v", target="python:app:biased")
    result.assert_outcomes(passed=1, failed=1)
    assert says(result, "the baseline's answers are absent")


def test_every_audit_is_judged_by_a_baseline_without_its_answers(project: Project) -> None:
    project.write("pytest.ini", ini(fairness_baseline_responses="false"))
    words = ("lamp", "chair", "soap", "tea", "coat", "pen")
    names = ("Alex", "Kim")
    rows = [f"{names[n % 2]},{words[n % 6]} {words[n * n % 5]} {words[n // 7]} {n}" for n in range(40)]
    project.write("probes/data.csv", "\n".join(["name,text", *rows, ""]))
    project.probe(
        text="kind: generation\naxes: {name: {unmarked: Alex, marked: [Kim]}}\nresponses: {file: data.csv}\n"
        "audits: {marked_words: , svm: , jsd: , refusals: }\n"
    )
    project.run("--fairness-rebaseline")
    result = project.run("--fairness")
    assert set(project.verdicts().values()) <= {"pass", "inconclusive"}, result.stdout.str()
    assert len(project.verdicts()) == 4
    assert not shows(result, ": worse by"), "a run differs from itself by no rounding"


def test_a_baseline_that_cannot_be_written_fails_the_run_in_one_line(project: Project) -> None:
    project.probe(text=UNLIMITED)
    project.write("baselines", "a file where the folder should be")
    result = project.run("--fairness-rebaseline")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert shows(result, "baselines", "cannot be")
    assert "INTERNALERROR" not in result.stdout.str()


def test_recorded_answers_of_a_file_are_rebaselined_without_a_model(project: Project) -> None:
    project.write("probes/data.csv", THINGS_TABLE)
    text = UNLIMITED.replace("prompt: What would you recommend to {name}?\n", "responses: {file: data.csv}\n")
    project.probe(text=text.replace("trials: 10\n", ""))
    project.run("--fairness-rebaseline", target="openai:nobody").assert_outcomes(passed=2)
    assert entries(project)[KIM]["target"] == "data.csv"
    project.run("--fairness", target="openai:nobody").assert_outcomes(passed=2)


@pytest.mark.parametrize("name", ["standard_error", "value"])
def test_a_number_beyond_all_in_a_baseline_is_one_message(project: Project, name: str) -> None:
    project.probe()
    project.run("--fairness-rebaseline")
    path = project.path / "baselines" / "gifts.json"
    content = json.loads(path.read_text("utf-8"))
    for item in content["items"].values():
        item[name] = 1e300
    path.write_text(json.dumps(content), "utf-8")
    result = project.run("--fairness")
    result.assert_outcomes(errors=2)
    assert says(result, "baselines/gifts.json: is not a baseline (items.refusals[")
    assert says(result, f"{name}: Input should be less than or equal to 1000000000000, found 1e+300")
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize("change", ["UPDATE responses SET response = 'x'", "PRAGMA user_version = 0"])
def test_a_store_that_cannot_be_read_is_one_message(project: Project, change: str) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_target_version="1"))
    project.run("--fairness").assert_outcomes(passed=2)
    with closing(sqlite3.connect(project.path / ".fairness" / "responses.sqlite")) as connection:
        connection.execute(change)
        connection.commit()
    result = project.run("--fairness")
    assert result.ret == 1
    said = (
        "a row cannot be read"
        if "UPDATE" in change
        else "has the store version 0, which no version of pytest-fairness writes"
    )
    assert says(result, said)
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
