"""`python -m pytest_fairness init`."""

import functools
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from pytest_fairness.__main__ import main
from pytest_fairness.commands import probes
from tests.support.projects import Project

PROBE, SCHEMA = "probes/first.yaml", "probes/probe.schema.json"
_schema = functools.cache(probes._schema)
GITHUB, GITLAB, GITLAB_JOB = ".github/workflows/fairness.yml", ".gitlab-ci.yml", ".gitlab/fairness.yml"


@pytest.fixture(autouse=True)
def _schema_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema depends on the code alone, and making it takes most of a run of `init`."""
    monkeypatch.setattr(probes, "_schema", _schema)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "a project"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


def files(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith(".git/"))


def remote(folder: Path, url: str) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n\tfetch = +refs/*:refs/*\n')


def workflow(path: Path) -> dict[str, Any]:
    loaded = YAML(typ="safe").load(path.read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_an_empty_folder_gets_all_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert files(folder) == [GITHUB, GITLAB, GITLAB_JOB, PROBE, SCHEMA]
    out = capsys.readouterr().out
    assert [line.removeprefix("wrote ") for line in out.splitlines() if line.startswith("wrote ")] == [
        PROBE,
        SCHEMA,
        GITHUB,
        GITLAB_JOB,
        GITLAB,
    ]
    assert f"\npytest --fairness {PROBE}\n" in out
    assert "\nThere are workflows for two CI services: delete the workflow of the service that you do not use.\n" in out
    assert out.endswith("\ngit add .github .gitlab .gitlab-ci.yml baselines probes pyproject.toml\n")


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("git@github.com:shop/gifts.git", [GITHUB]),
        ("https://user:secret@github.example.org/shop/gitlab-mirror.git", [GITHUB]),
        ("https://gitlab.com/shop/github-mirror.git", [GITLAB, GITLAB_JOB]),
        ("ssh://git@gitlab.example.org:2222/shop/gifts.git", [GITLAB, GITLAB_JOB]),
        ("https://git.example.org/shop/gifts.git", [GITHUB, GITLAB, GITLAB_JOB]),
    ],
)
def test_the_git_remote_selects_the_workflow(folder: Path, url: str, written: list[str]) -> None:
    remote(folder, url)
    assert main(["init"]) == 0
    assert files(folder) == [*written, PROBE, SCHEMA]


def test_existing_workflows_take_precedence_over_the_remote(folder: Path) -> None:
    remote(folder, "git@gitlab.com:shop/gifts.git")
    (folder / ".github").mkdir()
    assert main(["init"]) == 0
    assert files(folder) == [GITHUB, PROBE, SCHEMA]


@pytest.mark.parametrize(("service", "written"), [("github", [GITHUB]), ("gitlab", [GITLAB, GITLAB_JOB]), ("none", [])])
def test_the_option_ci_selects_the_workflow(folder: Path, service: str, written: list[str]) -> None:
    remote(folder, "git@github.com:shop/gifts.git")
    assert main(["init", "--ci", service]) == 0
    assert files(folder) == [*written, PROBE, SCHEMA]


def test_nothing_is_overwritten_without_force(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (PROBE, GITHUB, GITLAB, GITLAB_JOB):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine: 1\n")
    assert main(["init"]) == 0
    for name in (PROBE, GITHUB, GITLAB, GITLAB_JOB):
        assert (folder / name).read_text() == "mine: 1\n"
    out = capsys.readouterr().out
    assert f"{PROBE} exists and stays unchanged; --force overwrites it\n" in out
    # The file of the project's own jobs is never written over: it is said what to add to it.
    assert main(["init", "--force"]) == 0
    assert (folder / GITLAB).read_text() == "mine: 1\n"
    assert all("mine" not in (folder / name).read_text() for name in (PROBE, GITHUB, GITLAB_JOB))
    assert f"Add these lines to it:\n\ninclude:\n  - local: {GITLAB_JOB}\n" in capsys.readouterr().out


def test_a_second_call_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init"])
    before = {name: (folder / name).read_bytes() for name in files(folder)}
    capsys.readouterr()
    assert main(["init"]) == 0
    assert {name: (folder / name).read_bytes() for name in files(folder)} == before
    assert "stays unchanged" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("pyproject.toml", "[project]\n", '[tool.pytest.ini_options]\nfairness_target = "local"\n'),
        ("pytest.ini", "", "[pytest]\nfairness_target = local\n"),
        ("setup.cfg", "[metadata]\n[tool:pytest]\n", "[tool:pytest]\nfairness_target = local\n"),
    ],
)
def test_the_target_is_to_be_set_where_pytest_reads_its_settings(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    (folder / name).write_text(text, "utf-8")
    main(["init", "--ci", "none"])
    out = capsys.readouterr().out
    assert f"Set the target to audit in {name} (`local` is the embedded model):\n{said}" in out
    assert out.endswith(f"\ngit add baselines probes {name}\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\nminversion = "8"\nfairness_target = "openai:gpt-5"\n'),
        ("tox.ini", "[tox]\n[pytest]\nfairness_target = openai:gpt-5\n"),
    ],
)
def test_a_target_that_is_set_is_named(folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str) -> None:
    (folder / name).write_text(text, "utf-8")
    main(["init", "--ci", "none"])
    out = capsys.readouterr().out
    assert re.search(rf'The target to audit is set in {re.escape(name)}: "?openai:gpt-5"?\nThen run', out)
    assert "Set the target" not in out
    assert "embedded model" not in out


def test_a_subfolder_of_a_repository_is_an_error_with_two_commands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    remote(folder, "git@github.com:shop/gifts.git")
    deep = folder / "a team"
    deep.mkdir()
    monkeypatch.chdir(deep)
    assert main(["init"]) == 2
    assert files(deep) == []
    error = capsys.readouterr().err
    assert f"\ncd '{folder}' && python -m pytest_fairness init\n" in error
    assert main(shlex.split(error.splitlines()[-1])[3:]) == 0
    assert files(deep) == [PROBE, SCHEMA]


def test_a_write_error_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "probes").write_text("no folder")
    assert main(["init"]) == 2
    assert re.fullmatch(
        r"error: probes/first.yaml: cannot be written \(.*\)\. Check the path and its permissions\.\n",
        capsys.readouterr().err,
    )


@pytest.mark.parametrize(
    ("name", "text", "own"),
    [
        ("requirements-test.txt", "", "-r requirements-test.txt "),
        ("requirements.txt", "", "-r requirements.txt "),
        ("pyproject.toml", "[project]\nname = 'shop'\n", "-e . "),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", ""),
        ("pyproject.toml", "[", ""),
    ],
)
def test_the_workflow_installs_the_project_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, own: str
) -> None:
    installed_from(None, monkeypatch)
    (folder / name).write_text(text)
    assert main(["init"]) == 0
    assert install_commands(folder) == {f"pip install {own}'pytest-fairness[local,report]==9.8.7'"}


def installed_from(source: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put another installation of the package before this one, as pip records it."""
    folder = Path(tempfile.mkdtemp(dir=Path.cwd().parent)) / "pytest_fairness-9.8.7.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-fairness\nVersion: 9.8.7\n")
    if source is not None:
        (folder / "direct_url.json").write_text(json.dumps(source))
    monkeypatch.syspath_prepend(str(folder.parent))


def install_commands(folder: Path) -> set[str]:
    steps = workflow(folder / GITHUB)["jobs"]["fairness"]["steps"]
    [command] = [step["run"] for step in steps if step.get("name") == "Install"]
    return {command, workflow(folder / GITLAB_JOB)["fairness"]["script"][0]}


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        (
            {"url": "https://me:s3cret@git.example/f.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}},
            "'pytest-fairness[local,report] @ git+https://git.example/f.git@0a1b'",
        ),
        (
            {
                "url": "ssh://git@g.example/f.git",
                "vcs_info": {"vcs": "git", "commit_id": "0a1b"},
                "subdirectory": "p",
            },
            "'pytest-fairness[local,report] @ git+ssh://git@g.example/f.git@0a1b#subdirectory=p'",
        ),
        (
            {"url": "https://files.example/pytest_fairness-9.8.7-py3-none-any.whl", "archive_info": {}},
            "'pytest-fairness[local,report] @ https://files.example/pytest_fairness-9.8.7-py3-none-any.whl'",
        ),
    ],
)
def test_the_workflow_installs_from_the_same_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any], requirement: str
) -> None:
    installed_from(source, monkeypatch)
    assert main(["init"]) == 0
    assert install_commands(folder) == {f"pip install {requirement}"}


@pytest.mark.skipif(sys.platform == "win32", reason="the step's shell is POSIX's")
@pytest.mark.parametrize("more", [{"dir_info": {"editable": True}}, {"archive_info": {}}])
def test_a_local_installation_gives_a_step_that_fails_with_the_cure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: dict[str, Any]
) -> None:
    installed_from({"url": "file:///home/me/pytest-fairness", **more}, monkeypatch)
    assert main(["init"]) == 0
    assert "which fails until then" in capsys.readouterr().out
    [command] = install_commands(folder)
    step = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert step.returncode == 1
    assert "Replace this line by a command that installs pytest-fairness" in step.stdout
    assert "/home/me" not in command


def test_the_probe_matches_its_schema(folder: Path) -> None:
    assert main(["init"]) == 0
    first, *_ = (folder / PROBE).read_text("utf-8").splitlines()
    named = re.fullmatch(r"# yaml-language-server: \$schema=(.*)", first)
    assert named is not None
    schema = json.loads((folder / PROBE).parent.joinpath(named[1]).read_text("utf-8"))
    Draft7Validator.check_schema(schema)
    Draft7Validator(schema).validate(workflow(folder / PROBE))


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_the_command_of_the_workflow_runs(project: Project, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the workflow's own command with the written probe and an application that treats both groups alike."""
    assert main(["init", "--ci", service]) == 0
    if service == "github":
        steps = workflow(project.path / GITHUB)["jobs"]["fairness"]["steps"]
        [command] = [step["run"] for step in steps if step.get("name") == "Audit"]
    else:
        command = workflow(project.path / GITLAB_JOB)["fairness"]["script"][-1]
    summary = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    program, *arguments = shlex.split(command.replace("$FRESH", "--fairness-fresh").replace("$AGAINST", ""))
    assert program == "pytest"
    project.run(*arguments).assert_outcomes(passed=2)
    for report in ("fairness.json", "fairness.html", "junit.xml"):
        assert (project.path / report).stat().st_size > 0
    assert "## Fairness: No check got worse: all 2 passed" in summary.read_text("utf-8")
