"""Settings that have no option of their own, and settings in every file that pytest reads."""

from __future__ import annotations

import pytest

from pytest_fairness.options import OPTIONS, REPLACED
from tests.support.projects import INCONCLUSIVE, KIM, PROBE, Project, ini, says, shows
from tests.support.servers import ChatServer


def test_probe_folders_and_files_are_relative_to_the_rootdir(project: Project) -> None:
    project.probe("audits/one.yaml")
    project.probe("else/where/two.yaml")
    project.probe("probes/not_this.yaml")
    project.write("pytest.ini", ini(fairness_probes="audits else/where/two.yaml"))
    assert {item["probe"] for item in project.report()["items"]} == {"one", "two"}


def test_a_run_without_any_probe_says_where_they_are_looked_for(project: Project) -> None:
    project.probe("audits/one.yaml")
    result = project.run("--fairness", "audits")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert says(result, "fairness: no probes in probes (ini fairness_probes). Name a probe file on the")
    assert says(result, "or write a first probe with `python -m pytest_fairness init`")
    assert "no probes" not in project.run("--fairness", "audits/one.yaml", "-k", "nothing").stdout.str()
    assert "no probes" not in project.run("--fairness", "audits/on.yaml").stdout.str()


def test_a_folder_that_was_named_must_be_there(project: Project) -> None:
    project.write("pytest.ini", ini(fairness_probes="audits"))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: pytest.ini:2: fairness_probes: */audits does not exist. Correct the path, which is relative to *"]
    )


def test_baselines_and_store_can_be_elsewhere(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_baselines="data/base", fairness_store="data/answers.sqlite"))
    project.run("--fairness-rebaseline").assert_outcomes(passed=2)
    assert (project.path / "data/base/gifts.json").exists()
    assert (project.path / "data/answers.sqlite").exists()
    assert not (project.path / ".fairness").exists()
    assert not (project.path / "baselines").exists()


def test_without_any_ini_paths_are_relative_to_where_pytest_was_started(project: Project) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{gate: point}"))
    (project.path / "pytest.ini").unlink()
    if any((folder / "pyproject.toml").exists() for folder in project.path.parents):
        pytest.skip("some folder above the temporary ones has a configuration, which pytest finds")
    project.run("--fairness-rebaseline", "probes/gifts.yaml").assert_outcomes(passed=2)
    assert (project.path / "baselines/gifts.json").exists()
    project.run("--fairness", "probes").assert_outcomes(passed=2)
    project.run("--fairness").assert_outcomes(passed=2)


def test_the_stores_folder_keeps_itself_out_of_version_control(project: Project) -> None:
    project.probe()
    project.run("--fairness")
    assert (project.path / ".fairness/.gitignore").read_text().strip() == "*"


def test_recorded_answers_are_asked_again_past_their_age(project: Project) -> None:
    project.probe()
    with ChatServer() as server:
        arguments = ("--fairness", "--fairness-base-url", server.url)
        project.run(*arguments, target="openai:tiny")
        project.age_answers(1)
        project.run(*arguments, "-o", "fairness_max_age=1.1", target="openai:tiny")
        assert server.count == 30
        project.run(*arguments, "-o", "fairness_max_age=0.9", target="openai:tiny")
        assert server.count == 60


def test_an_application_with_a_version_is_not_asked_again(project: Project) -> None:
    project.probe()
    project.run("--fairness")
    project.run("--fairness")
    assert len(project.calls()) == 60
    project.write("pytest.ini", ini(fairness_target_version="2.1"))
    project.run("--fairness")
    project.run("--fairness")
    assert len(project.calls()) == 90


def test_an_inconclusive_item_can_count_as_a_failure(project: Project) -> None:
    project.probe(text=INCONCLUSIVE)
    project.write("pytest.ini", ini(fairness_fail_on="inconclusive"))
    result = project.run("--fairness", "--fairness-report", "report.json")
    result.assert_outcomes(failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert shows(result, f"FAILED probes/gifts.yaml::{KIM} - Kim vs Alex: ")
    assert project.read("report.json")["summary"]["inconclusive"] == 2


def test_a_request_has_a_time_limit(project: Project) -> None:
    project.probe(text=PROBE.replace("[Kim, Lou]", "[Kim]"))
    project.write("pytest.ini", ini(fairness_timeout="0.1", fairness_give_up="0.3"))
    with ChatServer(delay=30) as server:
        result = project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny")
    result.assert_outcomes(errors=1)


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("fairness_fail_on", "maybe", "pytest.ini:2: fairness_fail_on must be one or more of inconclusive, "),
        ("fairness_max_age", "old", "pytest.ini:2: fairness_max_age must be a number of at least 0."),
        ("fairness_concurrency", "many", "pytest.ini:2: fairness_concurrency must be a whole number of at least 1."),
        (
            "fairness_prices",
            "gpt cheap",
            "2: fairness_prices has a line that is not of the form `MODEL INPUT OUTPUT`: 'gpt cheap'",
        ),
        ("fairness_max_age", "-1", "fairness_max_age must be a number of at least 0"),
        ("fairness_timeout", "0", "fairness_timeout must be a number above 0"),
        ("fairness_give_up", "nan", "fairness_give_up must be a number above 0"),
        ("fairness_baseline_responses", "perhaps", "fairness_baseline_responses must be true or false"),
    ],
)
def test_a_wrong_value_is_a_usage_error_of_one_line(project: Project, name: str, written: str, message: str) -> None:
    project.write("pytest.ini", ini(**{name: written}))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert len(result.stderr.str().strip().splitlines()) == 1


def test_a_value_of_the_command_line_is_not_looked_for_in_the_file(project: Project) -> None:
    project.write("pytest.ini", ini(fairness_timeout="5"))
    result = project.run("--fairness", "-o", "fairness_timeout=0")
    assert "ERROR: -o fairness_timeout must be a number above 0" in result.stderr.str()


def test_settings_in_pyproject_as_text(project: Project) -> None:
    project.probe("audits/one.yaml", INCONCLUSIVE)
    (project.path / "pytest.ini").unlink()
    project.write(
        "pyproject.toml",
        '[tool.pytest.ini_options]\nfairness_probes = ["audits"]\nfairness_concurrency = "2"\n'
        'fairness_max_age = "1.5"\nfairness_baseline_responses = "false"\nfairness_fail_on = "inconclusive"\n',
    )
    project.run("--fairness-rebaseline").assert_outcomes(failed=2)
    assert [path.name for path in (project.path / "baselines").iterdir()] == ["one.json"]


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="pytest reads [tool.pytest] from 9.0 on")
def test_settings_in_pyproject_as_values(project: Project) -> None:
    project.probe("audits/one.yaml", INCONCLUSIVE)
    (project.path / "pytest.ini").unlink()
    project.write(
        "pyproject.toml",
        '[tool.pytest]\nfairness_probes = ["audits"]\nfairness_concurrency = 2\nfairness_max_age = 1.5\n'
        'fairness_timeout = 60\nfairness_baseline_responses = false\nfairness_fail_on = ["inconclusive"]\n'
        'fairness_target = "python:app:polite"\n',
    )
    project.run("--fairness-rebaseline", target=None).assert_outcomes(failed=2)
    assert [path.name for path in (project.path / "baselines").iterdir()] == ["one.json"]
    project.write("pyproject.toml", '[tool.pytest]\nfairness_concurrency = "2"\n')
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "fairness_concurrency" in result.stderr.str()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("fairness_taget", "fairness_target"),
        ("fairness_fail_off", "fairness_fail_on"),
        ("Fairness_store", None),
    ],
)
def test_an_unknown_setting_is_refused_with_what_was_meant(project: Project, written: str, meant: str | None) -> None:
    project.probe()
    project.write("pytest.ini", ini(**{written: "local"}))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = f"{written}: there is no such setting: did you mean '{meant or written.lower()}'?"
    result.stderr.fnmatch_lines([f"ERROR: pytest.ini:2: {told}"])
    project.write("pytest.ini", ini())
    result = project.run("--fairness", "-o", f"{written}=local")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: -o {told}"])
    assert project.calls() == []


NEW = ["against", "bundle", "control", "creep", "history", "nightly_share", "plan", "selftest", "verdict"]
"""Options for a year of nights, for the base branch, and for evidence."""


def test_a_setting_that_is_gone_says_what_replaces_it(project: Project) -> None:
    assert REPLACED.keys().isdisjoint(option.name for option in OPTIONS)
    assert len(OPTIONS) <= 35 + len(NEW), "each further option needs a user who asked for it"
    project.write("pytest.ini", ini(fairness_timeout="5", fairness_orphans="fail"))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = "fairness_orphans: there is no such setting any more: write fairness_fail_on = orphans"
    result.stderr.fnmatch_lines([f"ERROR: pytest.ini:3: {told}"])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "--fairness-reprot=a.html",
            "ERROR: --fairness-reprot: there is no such option. Did you mean '--fairness-report'?",
        ),
        ("--fairnes", "ERROR: --fairnes: there is no such option. Did you mean '--fairness'?"),
        ("--fairness-xyz", "*: error: unrecognized arguments: --fairness-xyz"),
    ],
)
def test_an_unknown_option_is_refused_with_what_was_meant(project: Project, written: str, said: str) -> None:
    project.probe()
    result = project.run(written)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_options_and_settings_that_a_conftest_declares_are_known(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_of_ours="yes"))
    declared = "parser.addini('fairness_of_ours', 'ours'); parser.addoption('--fairness-reports')"
    project.write("conftest.py", f"def pytest_addoption(parser):\n    {declared}\n")
    assert project.run("--fairness", "--fairness-reports=ours").ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PYTEST_FAIRNESS_TRAGET", ": did you mean 'PYTEST_FAIRNESS_TARGET'?"),
        ("PYTEST_FAIRNESS_CONCURRENCY", "; set fairness_concurrency in the ini file instead"),
    ],
)
def test_an_unknown_environment_variable_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    project.probe()
    monkeypatch.setenv(name, "python:app:biased")
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {name}: pytest-fairness reads no environment variable of this name{hint}"])
    assert project.run("-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
