"""`xfail` in the settings of an audit: every output calls the failure known, with its reason."""

from __future__ import annotations

import json
import re

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import KIM, LOU, PROBE, Project, says, shows

REASON = "ticket 123"
BASELINED = PROBE.replace("{limit: 0.5, gate: point}", "{tolerance: 0.2, gate: point}")
MARKED = BASELINED.replace("gate: point", f"gate: point, xfail: {{reason: {REASON}, groups: [name=Kim]}}")
STRICT = MARKED.replace("reason:", "strict: true, reason:")
BIASED = "python:app:biased"


@pytest.fixture
def baselined(project: Project) -> Project:
    """Return a project whose application treated all alike when its baseline was made."""
    project.probe(text=BASELINED)
    project.run("--fairness-rebaseline")
    project.probe(text=MARKED)
    return project


def outcomes(project: Project, *arguments: str, target: str = "python:app:polite") -> dict[str, object]:
    """Run, and return `expected_failure` of each item by id."""
    return {item["id"]: item["expected_failure"] for item in project.report(*arguments, target=target)["items"]}


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_known_regression_is_no_failure_in_any_output(
    baselined: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(baselined.path / "step.md"))
    reports = [f"--fairness-report={name}" for name in ("report.html", "report.codequality.json")]
    comment = "--fairness-report=pr.comment.md"
    files = ("--fairness-report=report.json", *reports, comment, "--junitxml=junit.xml")
    result = baselined.run("--fairness", *files, *workers, target=BIASED)
    assert result.parseoutcomes() == {"xfailed": 1, "passed": 1}
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, "~ 1 known failure, ✓ 1 pass")
    said = f"known failure: {REASON}; Kim vs Alex: refusals of Kim 100%, before 0%; worse by 1 (allowed 0.2)"
    assert says(result, said)
    notice = next(line for line in result.outlines if line.startswith("::"))
    start = f"::notice file=probes/gifts.yaml,line=8,title=known regression%3A {KIM}::known failure: {REASON}"
    assert notice.startswith(start)
    for text in ("accept", "Fix the target", "::error"):
        assert text not in result.stdout.str()

    finding = f'name="finding" value="{said}"'
    assert (baselined.path / "junit.xml").read_text("utf-8").count(finding) == 1
    report = baselined.read("report.json")
    item = next(item for item in report["items"] if item["id"] == KIM)
    assert (item["verdict"], item["expected_failure"]) == ("regression", {"reason": REASON, "outcome": "xfailed"})
    assert {name: report["summary"][name] for name in ("failed", "known", "passed")} == {
        "failed": 0, "known": 1, "passed": 1,
    }  # fmt: skip
    (entry,) = json.loads((baselined.path / "report.codequality.json").read_text("utf-8"))
    assert entry["severity"] == "info"
    for name in ("step.md", "pr.comment.md"):
        markdown = (baselined.path / name).read_text("utf-8")
        assert f"1 known regression ({REASON})" in markdown
        assert "📌 known regression" in markdown
        assert "❌" not in markdown
    assert "--fairness-rebaseline" not in (baselined.path / "pr.comment.md").read_text("utf-8")
    page = (baselined.path / "report.html").read_text("utf-8")
    assert f"1 known regression ({REASON}); no other check got worse, 1 passed." in page
    assert '<details class="item known' in page
    assert 'class="item failed' not in page
    assert '<option value="0">~ known</option>' in page


def test_an_unmarked_group_still_fails(baselined: Project) -> None:
    baselined.probe(text=MARKED.replace("name=Kim]}", "name=Lou]}"))
    result = baselined.run("--fairness", target=BIASED)
    result.assert_outcomes(failed=1, xpassed=1)
    assert shows(result, "✗ 1 regression, ✓ 1 passes now")


def test_a_reason_alone_marks_all_groups(baselined: Project) -> None:
    baselined.probe(text=MARKED.replace(f"{{reason: {REASON}, groups: [name=Kim]}}", REASON))
    found = outcomes(baselined, target=BIASED)
    assert found == {
        KIM: {"reason": REASON, "outcome": "xfailed"},
        LOU: {"reason": REASON, "outcome": "xpassed"},
    }


def test_an_item_that_no_longer_fails_says_so(baselined: Project) -> None:
    result = baselined.run("--fairness", "--fairness-report=report.md", "--fairness-report=report.html")
    result.assert_outcomes(xpassed=1, passed=1)
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, "✓ 1 passes now, ✓ 1 pass")
    assert says(result, f"no longer fails: remove the mark `xfail` ({REASON})")
    assert "no longer fails: remove the mark" in (baselined.path / "report.md").read_text("utf-8")
    page = (baselined.path / "report.html").read_text("utf-8")
    assert re.search(rf"No longer fails: remove the mark <code>xfail</code>:</strong> {REASON}", page)
    assert "all 2 passed" in page


@pytest.mark.parametrize("strict", ["probe", "ini"])
def test_a_strict_mark_fails_an_item_that_no_longer_fails(baselined: Project, strict: str) -> None:
    if strict == "probe":
        baselined.probe(text=STRICT)
    else:
        baselined.write("pytest.ini", "[pytest]\nxfail_strict = true\n")
    result = baselined.run("--fairness", "--fairness-report=report.json", "--fairness-report=report.html")
    result.assert_outcomes(failed=1, passed=1)
    assert shows(result, "✗ 1 passes now, ✓ 1 pass")
    report = baselined.read("report.json")
    assert (report["summary"]["failed"], report["summary"]["passed"]) == (1, 1)
    item = next(item for item in report["items"] if item["id"] == KIM)
    assert (item["verdict"], item["expected_failure"]) == ("pass", {"reason": REASON, "outcome": "failed"})
    page = (baselined.path / "report.html").read_text("utf-8")
    assert "1 of 2 checks passes although marked xfail; 1 passed." in page.replace("No regression found, but ", "")


def test_strict_false_overrides_the_ini(baselined: Project) -> None:
    baselined.probe(text=STRICT.replace("true", "false"))
    baselined.write("pytest.ini", "[pytest]\nxfail_strict = true\n")
    baselined.run("--fairness").assert_outcomes(xpassed=1, passed=1)


def test_the_mark_expects_bias_and_no_other_fault(project: Project) -> None:
    project.probe(text=MARKED)
    result = project.run("--fairness", target=BIASED)
    assert shows(result, "· 2 no-baseline")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result = project.run("--fairness", "--fairness-replay")
    result.assert_outcomes(errors=2)


def test_runxfail_ignores_the_mark(baselined: Project) -> None:
    assert outcomes(baselined, "--runxfail", target=BIASED) == {KIM: None, LOU: None}
    baselined.run("--fairness", "--runxfail", target=BIASED).assert_outcomes(failed=1, passed=1)


def test_an_unknown_group_is_an_error_of_the_probe(project: Project) -> None:
    project.probe(text=MARKED.replace("name=Kim]}", "name=Kin]}"))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert says(
        result,
        "probes/gifts.yaml:8: audits.refusals.xfail: unknown group 'name=Kin': did you mean 'name=Kim'?",
    )
    assert not project.calls()


@pytest.mark.parametrize(
    ("mark", "messages"),
    [
        ("{raeson: x}", ["xfail.reason` is missing: why", "unknown key 'raeson' in `audits.refusals.xfail`: did you"]),
        ("[a]", ["xfail` must be text or a mapping, not a list"]),
        ("''", ["xfail` must not be empty"]),
    ],
)
def test_a_faulty_mark_is_an_error_of_the_probe(project: Project, mark: str, messages: list[str]) -> None:
    project.probe(text=BASELINED.replace("gate: point", f"gate: point, xfail: {mark}"))
    text = project.run("--fairness").stdout.str()
    assert text.count("probes/gifts.yaml:8:") == len(messages)
    assert all(message in text for message in messages)


def test_a_python_test_marked_xfail_has_known_failures_too(project: Project) -> None:
    test = """
import pytest

@pytest.mark.fairness
def test_gifts(corpus_generator, fairness_check):
    corpus = corpus_generator("A gift for {name}?", axes={"name": {"unmarked": "Alex", "marked": ["Kim"]}}, trials=10)
    fairness_check("gifts", corpus.refusals("name", "Kim"), limit=0.2)
"""
    project.write("test_gifts.py", test.replace("@", f'@pytest.mark.xfail(reason="{REASON}")\n@', 1))
    result = project.run("--fairness", "--fairness-report=report.json", target=BIASED)
    result.assert_outcomes(xfailed=1)
    (item,) = project.read("report.json")["items"]
    assert (item["verdict"], item["expected_failure"]) == ("over-limit", {"reason": REASON, "outcome": "xfailed"})
    assert shows(result, "~ 1 known failure")


def test_the_history_of_runs_says_known(
    baselined: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    baselined.run("--fairness", target=BIASED)
    capsys.readouterr()
    monkeypatch.chdir(baselined.path)
    main(["history", "--item", KIM])
    assert re.search(r"^~ known ", capsys.readouterr().out, re.MULTILINE)
