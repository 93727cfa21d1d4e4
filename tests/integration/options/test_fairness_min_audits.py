"""A run in which no audit ran, or too few, is never green."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_fixtures import CORPUS
from tests.support.projects import PROBE, Project, ini, says

WORKER = ("-n", "1")
PLAIN = "def test_plain():\n    pass\n"
REPORTS = [word for name in ("r.json", "r.html", "r.md") for word in ("--fairness-report", name)]
FAILS = "The run fails because the ini option `fairness_min_audits` requires 1 (default: 1 in CI and in projects with a"


def kinds(project: Project) -> list[str]:
    return [note["kind"] for note in project.read("r.json")["notes"]]


@pytest.mark.parametrize("workers", [(), WORKER], ids=["one process", "a worker"])
def test_ordinary_tests_alone_are_no_audit(
    project: Project, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.probe()
    project.write("test_plain.py", PLAIN)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "step.md"))
    result = project.run("--fairness", *workers, *REPORTS, "test_plain.py")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "fairness: no audit is selected" in result.outlines
    assert says(
        result,
        "no audit ran: no probe was selected; the folders with probes are probes (ini option `fairness_probes`).",
    )
    assert says(result, FAILS)
    assert kinds(project) == ["no-audit"]
    for name in ("r.html", "r.md", "step.md"):
        assert "no audit ran: no probe was selected" in (project.path / name).read_text("utf-8"), name


def test_a_project_without_probes_is_told_and_passes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe("renamed/gifts.yaml")
    project.write("test_plain.py", PLAIN)
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.OK
    assert says(result, "no audit ran: no probe was selected")
    assert not says(result, "The run fails")
    monkeypatch.setenv("CI", "true")
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert says(result, FAILS)
    monkeypatch.setenv("CI", "false")
    assert project.run("--fairness").ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    "arguments",
    [("-k", "nothing"), ("--ignore=probes",), ("-o", "collect_imported_tests=true", "-m", "nightly")],
    ids=["-k", "ignored", "-m"],
)
def test_where_nothing_else_was_selected_the_exit_code_is_pytests_own(
    project: Project, arguments: tuple[str, ...]
) -> None:
    project.probe()
    result = project.run("--fairness", *REPORTS, *arguments)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert says(result, "no audit ran")
    assert kinds(project) == ["no-audit"]


@pytest.mark.parametrize("workers", [(), WORKER], ids=["one process", "a worker"])
def test_skipped_audits_did_not_run(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=PROBE.replace("gate: point", "gate: point, skip: known"))
    result = project.run("--fairness", *REPORTS, *workers)
    result.assert_outcomes(skipped=2)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert says(result, "no audit ran: of 2 selected audits, 2 were skipped or not reached.")
    project.write("test_plain.py", PLAIN)
    result = project.run("--fairness", *workers)
    result.assert_outcomes(skipped=2, passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert project.run("--fairness", "-o", "fairness_min_audits=0").ret == pytest.ExitCode.OK


def test_an_expected_failure_did_run(project: Project) -> None:
    project.probe(text=PROBE.replace("gate: point", "gate: point, xfail: known"))
    result = project.run("--fairness", *REPORTS, target="python:app:biased")
    assert result.parseoutcomes()["xfailed"] == 1
    assert result.ret == pytest.ExitCode.OK
    assert kinds(project) == []


def test_what_could_not_be_measured_did_not_run(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-replay", *REPORTS)
    result.assert_outcomes(errors=2)
    assert says(result, "no audit ran: of 2 selected audits, 2 could not be measured.")


def test_a_number_of_audits_can_be_asked_for(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_min_audits="3"))
    result = project.run("--fairness", *REPORTS)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert says(result, "only 2 audits ran; the ini option `fairness_min_audits` requires 3.")
    assert kinds(project) == ["few-audits"]
    project.probe("probes/more.yaml")
    assert project.run("--fairness").ret == pytest.ExitCode.OK


def test_python_tests_are_audits_too(project: Project) -> None:
    project.write("test_own.py", CORPUS)
    project.write("pytest.ini", ini(fairness_min_audits="1"))
    result = project.run("--fairness", *REPORTS, "-o", "fairness_fail_on=")
    assert kinds(project) == []
    for head in ("@pytest.mark.fairness\ndef test_own()", "def test_own(llm_client)"):
        project.write("test_own.py", f"import pytest\n{head}:\n    assert True\n")
        result = project.run("--fairness", *REPORTS, *WORKER)
        assert (result.ret, kinds(project)) == (pytest.ExitCode.OK, [])
    project.write("test_own.py", "import pytest\n@pytest.mark.fairness\ndef test_own():\n    pytest.skip('later')\n")
    result = project.run("--fairness", *REPORTS)
    assert (result.ret, kinds(project)) == (pytest.ExitCode.NO_TESTS_COLLECTED, ["no-audit"])


@pytest.mark.parametrize("option", ["--co", "--setup-plan", "--fairness-dry-run"])
def test_what_runs_nothing_on_purpose_is_exempt(project: Project, option: str) -> None:
    project.probe()
    project.write("test_plain.py", PLAIN)
    result = project.run("--fairness", option, "-k", "plain")
    assert result.ret == pytest.ExitCode.OK
    assert "no audit ran" not in result.stdout.str()


def test_nothing_changes_without_the_flag(project: Project) -> None:
    project.probe()
    project.write("test_plain.py", PLAIN)
    result = project.run(target=None)
    assert result.ret == pytest.ExitCode.OK
    assert "audit" not in result.stdout.str()


@pytest.mark.parametrize("mark", ["skip", "skipif", "xfail"])
def test_a_probe_cannot_silence_itself_without_a_reason(project: Project, mark: str) -> None:
    project.probe(text=f"{PROBE}marks: [{mark}]\n")
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert says(
        result,
        f"probes/gifts.yaml: `marks:` cannot hold '{mark}': the mark needs a reason. Write the reason in the settings",
    )
    assert Path(project.path / "calls.txt").exists() is False


def test_a_number_below_0_is_refused(project: Project) -> None:
    result = project.run("--fairness", "-o", "fairness_min_audits=-1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: -o fairness_min_audits must be a whole number of at least 0, not -1."])
