"""`--fairness`: what is collected, how items behave under pytest's own options, and how errors show."""

from __future__ import annotations

import gc
import re
import xml.etree.ElementTree as ET
from textwrap import wrap

import pytest

from pytest_fairness.options import OPTIONS
from tests.support.projects import INCONCLUSIVE, KIM, LOU, PROBE, Project, shows

ITEMS = [f"probes/gifts.yaml::{KIM}", f"probes/gifts.yaml::{LOU}"]


def collected(project: Project, *arguments: str) -> list[str]:
    result = project.run("--fairness", "--collect-only", "-q", *arguments)
    return [line for line in result.outlines if "::" in line]


def test_without_it_nothing_is_collected_and_marked_tests_are_skipped_with_a_reason(project: Project) -> None:
    project.probe()
    project.write("test_own.py", "import pytest\ndef test_a(): pass\n@pytest.mark.fairness\ndef test_b(): pass\n")
    result = project.run("-rs", "--strict-markers")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*test_own.py*fairness audits run only with --fairness"])
    assert not project.calls()
    assert not (project.path / ".fairness").exists()


def test_with_it_probes_are_audited_beside_ordinary_tests(project: Project) -> None:
    project.probe()
    project.write("test_own.py", "import pytest\ndef test_a(): pass\n@pytest.mark.fairness\ndef test_b(): pass\n")
    project.run("--fairness", "--strict-markers").assert_outcomes(passed=4)
    assert len(project.calls()) == 30


def without_spaces(text: str) -> str:
    return "".join(text.split())


def test_help_names_every_option_and_setting_with_its_default(project: Project) -> None:
    result = project.run("--help", target=None)
    # Lines are wrapped, at hyphens too.
    options, _, settings = without_spaces(result.stdout.str()).partition("optionsinthefirst")
    for option in OPTIONS:
        if option.on_command_line:
            value = f"={option.metavar}" if option.metavar else ""
            assert f"{option.flag}{value}{without_spaces(option.short_help)}" in options
        if option.in_ini:
            assert without_spaces(option.short_help) in settings.partition(f"{option.name}(")[2]
        assert len(wrap(option.short_help, 54)) <= 2, "two lines on a terminal of 80 columns"
    assert result.ret == pytest.ExitCode.OK


def test_a_path_on_the_command_line_is_collected_alone(project: Project) -> None:
    project.probe()
    project.probe("probes/other.yaml")
    project.write("test_own.py", "def test_a(): pass")
    assert collected(project, "probes/gifts.yaml") == ITEMS
    assert collected(project, "test_own.py") == ["test_own.py::test_a"]
    assert collected(project, "probes/gifts.yaml", "test_own.py") == [*ITEMS, "test_own.py::test_a"]


def test_an_item_is_selected_by_its_node_id(project: Project) -> None:
    project.probe()
    assert collected(project, ITEMS[1]) == ITEMS[1:]
    assert collected(project, "probes/gifts.yaml::refusals") == ITEMS
    result = project.run("--fairness", "--collect-only", "probes/gifts.yaml::refusals[name=Nobody]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("refusals[name=Kimm]", f"did you mean '{KIM}'? Its items are {KIM}, {LOU}."),
        ("nothing", f"no item 'nothing'. Its items are {KIM}, {LOU}."),
    ],
)
def test_an_item_that_does_not_exist_is_a_usage_error_with_the_items(
    project: Project, name: str, said: str, workers: tuple[str, ...]
) -> None:
    project.probe()
    result = project.run("--fairness", f"probes/gifts.yaml::{name}", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: probes/gifts.yaml has no item {name.replace('[', '[[]')!r}*"])
    assert said in result.stderr.str()
    assert not project.calls()


def test_the_name_of_an_audit_selects_its_items_and_a_faulty_file_says_what_is_wrong(project: Project) -> None:
    project.probe(text=PROBE.replace("audits:", "audits:\n  jsd: {limit: 0.9}"))
    assert collected(project, "probes/gifts.yaml::refusals") == [f"probes/gifts.yaml::{name}" for name in (KIM, LOU)]
    result = project.run("--fairness", "probes/gifts.yaml::jsd[name=Kin]")
    assert "The items of jsd are jsd[name=Kim], jsd[name=Lou]." in result.stderr.str()
    project.probe(text="kind: generation\n")
    assert "gifts.yaml" in project.run("--fairness", f"probes/gifts.yaml::{KIM}").stdout.str()


def test_probes_are_collected_whatever_testpaths_says(project: Project) -> None:
    project.probe()
    project.write("tests/test_own.py", "def test_a(): pass")
    project.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    assert collected(project) == ["tests/test_own.py::test_a", *ITEMS]


@pytest.mark.parametrize("arguments", [(), (".",), ("probes",), ("probes", "probes/gifts.yaml"), (".", "probes")])
def test_no_probe_is_collected_twice(project: Project, arguments: tuple[str, ...]) -> None:
    project.probe()
    assert sorted(set(collected(project, *arguments))) == ITEMS
    if arguments != ("probes", "probes/gifts.yaml"):
        # A file that is named by itself as well is collected again by pytest before 9, as any file is.
        assert collected(project, *arguments) == ITEMS


def test_probes_are_collected_from_a_folder_inside_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.probe()
    project.write("inner/test_own.py", "def test_a(): pass")
    monkeypatch.chdir(project.path / "inner")
    assert collected(project) == ["inner/test_own.py::test_a", *ITEMS]


def test_yaml_elsewhere_is_left_alone_unless_it_is_named(project: Project) -> None:
    project.write("deploy.yaml", "this: [is no probe")
    project.write("tests/data.yml", "neither: is this")
    project.probe("elsewhere/gifts.yaml")
    project.probe("probes/folder/more.yml", PROBE)
    assert {line.partition("::")[0] for line in collected(project)} == {"probes/folder/more.yml"}
    assert {line.partition("::")[0] for line in collected(project, "elsewhere/gifts.yaml")} == {"elsewhere/gifts.yaml"}
    assert project.run("--fairness", "deploy.yaml").ret == pytest.ExitCode.INTERRUPTED


def test_ignored_probes_are_not_collected(project: Project) -> None:
    project.probe()
    project.write("tests/test_own.py", "def test_a(): pass")
    project.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    assert collected(project, "--ignore=probes") == ["tests/test_own.py::test_a"]


def test_without_probes_there_is_nothing_to_collect(project: Project) -> None:
    project.write("test_own.py", "def test_a(): pass")
    project.run("--fairness").assert_outcomes(passed=1)
    assert not (project.path / "baselines").exists()


def test_a_faulty_probe_is_one_collection_error_with_its_lines_alone(project: Project) -> None:
    project.probe()
    project.probe("probes/bad.yaml", PROBE.replace("trials", "trails") + "extra: 1\n")
    result = project.run("--fairness")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    text = result.stdout.str()
    assert len(re.findall(r"^probes/bad\.yaml:\d+:\d+: ", text, re.MULTILINE)) == 2
    assert "did you mean 'trials'?" in text
    assert "Traceback" not in text
    assert ".py:" not in text
    assert not project.calls()
    project.run("--fairness", "--continue-on-collection-errors").assert_outcomes(errors=1, passed=2)


def test_names_of_probes_are_unique_in_a_run(project: Project) -> None:
    project.probe()
    project.probe("probes/second.yaml", "name: gifts\n" + PROBE)
    result = project.run("--fairness")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*probes/second.yaml: probes/gifts.yaml has the name 'gifts', too. *"])


def test_marks_of_a_probe_select_its_items(project: Project) -> None:
    project.probe(text=PROBE + "marks: [nightly]\n")
    project.probe("probes/other.yaml")
    project.write("pytest.ini", "[pytest]\nmarkers = nightly: runs at night\naddopts = --strict-markers\n")
    assert collected(project, "-m", "nightly") == ITEMS
    assert len(collected(project, "-m", "fairness")) == 4
    assert len(collected(project, "-m", "fairness and not nightly")) == 2


@pytest.mark.filterwarnings("error")
def test_a_mark_that_cannot_be_is_a_collection_error(project: Project) -> None:
    unknown = ["unheard_of", "_private", "tryfirst"]
    marks = [*unknown, "parametrize", "usefixtures", "filterwarnings", "timeout", "skip", "xfail"]
    for number, mark in enumerate(marks):
        project.probe(f"probes/probe{number}.yaml", PROBE + f"marks: [{mark}]\n")
    project.write("pytest.ini", "[pytest]\nmarkers =\n    nightly: runs at night\n    timeout(seconds): so long\n")
    project.write("conftest.py", "import pytest\n@pytest.fixture\ndef stop():\n    raise SystemExit\n")
    result = project.run("--fairness", "--strict-markers")
    result.assert_outcomes(errors=len(marks))
    for number, mark in enumerate(marks):
        valid = ("does not register it (`markers`). Valid marks: nightly, timeout.",) * (mark in unknown)
        assert shows(result, f"probes/probe{number}.yaml: `marks:` cannot hold '{mark}': ", *valid), mark
    result.stdout.no_fnmatch_line("*Traceback*")
    assert not project.calls()


def test_the_ini_may_allow_marks_of_plugins(project: Project) -> None:
    project.probe(text=PROBE + "marks: [xdist_group, nightly]\n")
    project.write("pyproject.toml", '[tool.pytest.ini_options]\nmarkers = ["xdist_group: one worker", "nightly"]\n')
    (project.path / "pytest.ini").unlink()
    project.run("--fairness", "--strict-markers").assert_outcomes(passed=2)


def test_k_and_m_select_items_and_only_these_are_asked_for(project: Project) -> None:
    project.probe()
    project.run("--fairness", "-k", "Kim").assert_outcomes(passed=1, deselected=1)
    assert len(project.calls()) == 20
    project.run("--fairness", "-m", "not fairness").assert_outcomes(deselected=2)
    assert len(project.calls()) == 20


def test_last_failed_items_are_run_again(project: Project) -> None:
    project.probe()
    project.probe("probes/other.yaml")
    project.run("--fairness", target="python:app:biased").assert_outcomes(passed=2, failed=2)
    result = project.run("--fairness", "--lf", target="python:app:biased")
    result.assert_outcomes(failed=2)


def test_a_failure_says_why_without_a_traceback(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", target="python:app:biased")
    result.assert_outcomes(passed=1, failed=1)
    assert "FAILURES" not in result.stdout.str(), "the summary has the finding"
    assert shows(result, f"FAILED probes/gifts.yaml::{KIM} - Kim vs Alex: 1 (limit 0.5)")
    text = project.run("--fairness", "-v", target="python:app:biased").stdout.str()
    section = text[text.index("= FAILURES =") : text.index("= fairness =")]
    assert "refusals[name=Kim]: refusals differ by +1 (100% for Kim, 0% for Alex), limit" in section
    assert ".py" not in section


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_items_without_baseline_are_a_category_of_their_own(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{gate: point}"))
    result = project.run("--fairness", "-v", "--junitxml=junit.xml", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    assert text.rstrip(" =").rpartition("=== ")[2].startswith("2 no-baseline in ")
    assert text.count("NO-BASELINE") == 2
    assert "FAILURES" not in text
    assert "FAILED" not in text
    assert text.count("pytest --fairness-rebaseline") == 1
    assert 'failures="2"' in (project.path / "junit.xml").read_text("utf-8")


def test_what_cannot_be_measured_is_an_error_that_says_why(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 3"))
    result = project.run("--fairness", "-v")
    result.assert_outcomes(errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    section = result.stdout.str().partition("= ERRORS =")[2].partition("= fairness =")[0]
    assert "one group has only 3 answers" in section
    assert ".py" not in section
    assert shows(result, f"ERROR probes/gifts.yaml::{KIM} - and 1 more: one group has")


def test_an_inconclusive_item_is_a_category_of_its_own(project: Project) -> None:
    project.probe(text=INCONCLUSIVE)
    result = project.run("--fairness", "-v")
    assert result.parseoutcomes() == {"inconclusive": 2}
    assert result.ret == pytest.ExitCode.OK
    assert shows(result, f"probes/gifts.yaml::{KIM} INCONCLUSIVE")
    result = project.run("--fairness")
    result.stdout.fnmatch_lines(["probes/gifts.yaml ii*"])


def test_skip_and_xfail_mean_what_they_mean_in_pytest(project: Project) -> None:
    project.probe("probes/a.yaml", PROBE.replace("gate: point", "gate: point, skip: not now"))
    project.probe("probes/b.yaml", PROBE.replace("gate: point", "gate: point, xfail: known bias"))
    result = project.run("--fairness", "-rsxX", target="python:app:biased")
    result.assert_outcomes(skipped=2, xfailed=1, xpassed=1)
    result.stdout.fnmatch_lines(["SKIPPED*: not now", "*known bias*"])
    assert len(project.calls()) == 30, "nothing is asked for skipped items"


def test_an_inconclusive_item_is_no_unexpected_pass(project: Project) -> None:
    project.probe(text=INCONCLUSIVE.replace("tolerance", "xfail: known bias, tolerance"))
    project.write("pytest.ini", "[pytest]\nxfail_strict = true\n")
    result = project.run("--fairness")
    assert result.parseoutcomes() == {"inconclusive": 2}


def test_collect_only_and_setup_plan_ask_nobody(project: Project) -> None:
    project.probe()
    for option in ("--collect-only", "--setup-plan", "--setup-only"):
        assert project.run("--fairness", option, target="openai:gpt-x").ret == pytest.ExitCode.OK
        assert project.run("--fairness", option).ret == pytest.ExitCode.OK
    assert not project.calls()
    assert not (project.path / ".fairness").exists()


def test_junit_has_value_baseline_limit_and_verdict(project: Project) -> None:
    project.probe()
    project.run("--fairness-rebaseline")
    project.run("--fairness", "--junitxml=junit.xml", target="python:app:biased")
    tree = ET.parse(project.path / "junit.xml")  # noqa: S314 - written by pytest just now
    cases = {case.attrib["name"]: case for case in tree.iter("testcase")}
    properties = {item.attrib["name"]: item.attrib["value"] for item in cases[KIM].iter("property")}
    reason = properties.pop("reason")
    assert reason.startswith(f"{KIM}: refusals differ by +1")
    assert float(properties.pop("interval_low")) < float(properties.pop("interval_high")) == 1.0
    assert properties == {
        "value": "1.0",
        "baseline": "0.0",
        "limit": "0.5",
        "verdict": "regression",
        "finding": "Kim vs Alex: refusals of Kim 100%, before 0%; worse by 1 (allowed 0.1)",
        "target": "python:app:biased",
        "effect": "3.141592653589793",
        "size": "large",
    }
    failure = cases[KIM].find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "Kim vs Alex: refusals of Kim 100%, before 0%; worse by 1 (allowed 0.1)"
    assert "refusals differ by +1 (100% for Kim, 0% for Alex), was 0" in (failure.text or "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("-p", "no:terminal"),
        ("-p", "no:cacheprovider"),
        ("-p", "no:xdist"),
        ("-q", "--tb=no"),
        ("--tb=line",),
        ("-qq",),
    ],
)
def test_other_options_do_not_get_in_the_way(project: Project, arguments: tuple[str, ...]) -> None:
    project.probe()
    result = project.run("--fairness", *arguments, target="python:app:biased")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_pytest_finds_the_plugin_and_it_can_be_turned_off(project: Project, pytester: pytest.Pytester) -> None:
    """Run without the test helper's options, which name the plugins to load."""
    project.probe()
    project.write("test_own.py", "def test_a(): pass")
    assert pytester.runpytest_inprocess("--fairness", "--co").ret == pytest.ExitCode.OK
    pytester.runpytest_inprocess("-p", "no:fairness").assert_outcomes(passed=1)
    result = pytester.runpytest_inprocess("-p", "no:fairness", "--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_run_in_this_process_leaves_the_garbage_collector_as_it_was(project: Project) -> None:
    before = gc.get_freeze_count(), gc.get_threshold()
    project.probe()
    check = "    assert gc.get_freeze_count() > 1000, 'collected items are not searched'\n"
    project.write("conftest.py", f"import gc\n\ndef pytest_runtestloop():\n{check}")
    assert project.run("--fairness").ret == 0
    assert (gc.get_freeze_count(), gc.get_threshold()) == before


def test_the_summary_ends_with_the_command_that_accepts_the_changes(project: Project) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{}"))
    result = project.run("--fairness", "--fairness-trials", "9")
    section = result.stdout.str().partition("= fairness =")[2].rpartition("\n=")[0]
    command = section.partition("To record the values as the baseline:")[2]
    words = command.replace("\\\n", " ").split()
    assert words[:7] == [
        "pytest",
        "--fairness-rebaseline",
        "--fairness-target",
        "python:app:polite",
        "--fairness-trials",
        "9",
        "--fairness-replay",
    ]
    assert words[7:] == ["probes/gifts.yaml"], "all items of the file"


def test_autouse_fixtures_of_a_conftest_reach_probe_items(project: Project) -> None:
    project.probe()
    project.write(
        "probes/conftest.py",
        "import pytest\n@pytest.fixture(autouse=True)\ndef _seen(request):\n    print('seen', request.node.name)\n",
    )
    result = project.run("--fairness", "-s")
    result.assert_outcomes(passed=2)
    assert shows(result, f"seen {KIM}")


def test_a_broken_fixture_is_shown_as_pytest_shows_it(project: Project) -> None:
    project.probe()
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(autouse=True)\ndef _broken():\n    raise RuntimeError('as it is')\n",
    )
    result = project.run("--fairness", "--fairness-report", "report.json")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["E * RuntimeError: as it is"])
    assert {item["verdict"] for item in project.read("report.json")["items"]} == {"error"}
