"""`python -m pytest_fairness init`."""

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from pytest_fairness.__main__ import main
from pytest_fairness.baselines.entries import Entry, Row
from pytest_fairness.baselines.files import update_baseline
from pytest_fairness.commands import init
from pytest_fairness.records import Measurement
from tests.support.projects import Project, installed_from

PROBE, SCHEMA = "probes/first.yaml", "probes/probe.schema.json"
_schema = functools.cache(init._schema)
GITHUB, GITLAB, GITLAB_JOB = ".github/workflows/fairness.yml", ".gitlab-ci.yml", ".gitlab/fairness.yml"
IGNORE = ".gitignore"


@pytest.fixture(autouse=True)
def _schema_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema depends on the code alone, and making it takes most of a run of `init`."""
    monkeypatch.setattr(init, "_schema", _schema)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project; the package seems to be installed from an index."""
    path = tmp_path / "a project"
    path.mkdir()
    monkeypatch.chdir(path)
    installed_from(None, monkeypatch)
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


def test_an_empty_folder_gets_one_workflow(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert files(folder) == [GITHUB, IGNORE, PROBE, SCHEMA]
    out = capsys.readouterr().out
    written = [line.removeprefix("wrote ") for line in out.splitlines() if line.startswith("wrote ")]
    assert written == [PROBE, SCHEMA, GITHUB, IGNORE]
    assert "For GitLab: python -m pytest_fairness init --ci gitlab\n" in out
    assert f"\npytest --fairness {PROBE}\n" in out
    assert "The workflow installs with: pip install 'pytest-fairness[local,report]==9.8.7'\n" in out
    assert out.endswith("\ngit add .github .gitignore baselines probes pyproject.toml\n")


@pytest.mark.parametrize(
    ("answer", "written"),
    [("", [GITHUB, IGNORE]), ("gitlab", [IGNORE, GITLAB, GITLAB_JOB]), ("none", [])],
)
def test_on_a_terminal_a_question_selects_the_workflow(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, written: list[str]
) -> None:
    answers_typed(monkeypatch, {"CI service": answer})
    assert main(["init"]) == 0
    assert files(folder) == sorted([*written, PROBE, SCHEMA])


def answers_typed(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str]) -> None:
    """Answer questions on a terminal, each by words of the question."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(
        "builtins.input", lambda question: next(text for words, text in answers.items() if words in question)
    )


def test_an_answer_that_names_no_service_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers_typed(monkeypatch, {"CI service": "jenkins"})
    assert main(["init"]) == 2
    assert files(folder) == []
    assert "Answer github, gitlab or none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("git@github.com:shop/gifts.git", [GITHUB, IGNORE]),
        ("https://user:secret@github.example.org/shop/gitlab-mirror.git", [GITHUB, IGNORE]),
        ("https://gitlab.com/shop/github-mirror.git", [IGNORE, GITLAB, GITLAB_JOB]),
        ("ssh://git@gitlab.example.org:2222/shop/gifts.git", [IGNORE, GITLAB, GITLAB_JOB]),
        ("https://git.example.org/shop/gifts.git", [GITHUB, IGNORE]),
    ],
)
def test_the_git_remote_selects_the_workflow(folder: Path, url: str, written: list[str]) -> None:
    remote(folder, url)
    assert main(["init"]) == 0
    assert files(folder) == sorted([*written, PROBE, SCHEMA])


def test_existing_workflows_take_precedence_over_the_remote(folder: Path) -> None:
    remote(folder, "git@gitlab.com:shop/gifts.git")
    (folder / ".github").mkdir()
    assert main(["init"]) == 0
    assert files(folder) == [GITHUB, IGNORE, PROBE, SCHEMA]


@pytest.mark.parametrize(
    ("service", "written"), [("github", [GITHUB, IGNORE]), ("gitlab", [IGNORE, GITLAB, GITLAB_JOB]), ("none", [])]
)
def test_the_option_ci_selects_the_workflow(folder: Path, service: str, written: list[str]) -> None:
    remote(folder, "git@github.com:shop/gifts.git")
    assert main(["init", "--ci", service]) == 0
    assert files(folder) == sorted([*written, PROBE, SCHEMA])


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_nothing_is_overwritten_without_force(folder: Path, capsys: pytest.CaptureFixture[str], service: str) -> None:
    own = [PROBE, GITHUB] if service == "github" else [PROBE, GITLAB, GITLAB_JOB]
    for name in own:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine: 1\n")
    assert main(["init", "--ci", service]) == 0
    for name in own:
        assert (folder / name).read_text() == "mine: 1\n"
    out = capsys.readouterr().out
    assert f"{PROBE} exists and stays unchanged; --force overwrites it\n" in out
    # The file of the project's own jobs is never written over: it is said what to add to it.
    assert main(["init", "--ci", service, "--force"]) == 0
    assert all("mine" not in (folder / name).read_text() for name in own if name != GITLAB)
    if service == "gitlab":
        assert (folder / GITLAB).read_text() == "mine: 1\n"
        assert f"Add these lines to it:\n\ninclude:\n  - local: {GITLAB_JOB}\n" in capsys.readouterr().out


def test_reports_are_ignored_beside_what_the_project_ignores(folder: Path) -> None:
    (folder / IGNORE).write_text("build/\njunit.xml")
    main(["init"])
    lines = (folder / IGNORE).read_text().splitlines()
    assert lines[:2] == ["build/", "junit.xml"]
    steps = {step.get("name"): step for step in workflow(folder / GITHUB)["jobs"]["fairness"]["steps"]}
    reports = re.findall(r"--(?:fairness-report|junitxml) (\S+)", steps["Audit"]["run"])
    assert {*reports} <= {*lines}
    assert lines.count("junit.xml") == 1


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
def test_the_workflow_installs_the_project_too(folder: Path, name: str, text: str, own: str) -> None:
    (folder / name).write_text(text)
    assert install_commands(folder) == {f"pip install {own}'pytest-fairness[local,report]==9.8.7'"}


def install_commands(folder: Path, *options: str) -> set[str]:
    """Return the install commands of the two services' workflows."""
    assert main(["init", "--ci", "github", *options]) == main(["init", "--ci", "gitlab", *options]) == 0
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
    assert install_commands(folder) == {f"pip install {requirement}"}


def test_a_wheel_of_this_machine_is_copied_into_the_project(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "pytest_fairness-9.8.7-py3-none-any.whl"
    wheel = folder.parent / "a folder of downloads" / name
    wheel.parent.mkdir()
    wheel.write_bytes(b"a wheel")
    installed_from({"url": wheel.as_uri(), "archive_info": {}}, monkeypatch)
    assert install_commands(folder) == {f"pip install './vendor/{name}[local,report]'"}
    assert (folder / "vendor" / name).read_bytes() == b"a wheel"
    assert capsys.readouterr().out.splitlines()[-1].endswith(" probes pyproject.toml vendor")
    # Installed from the copy: nothing is copied again.
    wheel.unlink()
    installed_from({"url": (folder / "vendor" / name).as_uri(), "archive_info": {}}, monkeypatch)
    assert install_commands(folder, "--force") == {f"pip install './vendor/{name}[local,report]'"}


def clone(folder: Path, url: str, *, pushed: bool) -> str:
    """Make a repository that looks like a clone; return its commit."""
    folder.mkdir()
    run = functools.partial(subprocess.run, cwd=folder, check=True, capture_output=True, text=True)
    author = ("-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org")
    for arguments in (("init", "-q"), (*author, "commit", "-q", "--allow-empty", "-m", "First")):
        run(["git", *arguments])
    commit = run(["git", "rev-parse", "HEAD"]).stdout.strip()
    run(["git", "remote", "add", "origin", url])
    if pushed:
        run(["git", "update-ref", "refs/remotes/origin/main", commit])
    return str(commit)


@pytest.mark.parametrize(
    "url", ["https://me:s3cret@git.example/f.git", "git@git.example:f.git", "ssh://git@git.example/f.git"]
)
def test_a_clone_whose_commit_was_pushed_is_installed_from_its_remote(
    folder: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    commit = clone(folder.parent / "clone", url, pushed=True)
    installed_from({"url": (folder.parent / "clone").as_uri(), "dir_info": {"editable": True}}, monkeypatch)
    requirement = f"pytest-fairness[local,report] @ git+https://git.example/f.git@{commit}"
    assert install_commands(folder) == {f"pip install '{requirement}'"}


@pytest.mark.parametrize("kind", ["absent", "no repository", "not pushed", "wheel is gone"])
def test_an_installation_that_others_do_not_have_gives_no_workflow_but_the_command_for_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    source = folder.parent / "clone"
    if kind == "no repository":
        source.mkdir()
    elif kind == "not pushed":
        clone(source, "https://git.example/f.git", pushed=False)
    elif kind == "wheel is gone":
        source = source / "f.whl"
    installed_from({"url": source.as_uri(), "dir_info": {}}, monkeypatch)
    assert main(["init", "--ci", "github"]) == 0
    assert files(folder) == [PROBE, SCHEMA]
    out = capsys.readouterr().out
    assert (
        "No workflow was written: pytest-fairness was installed from a folder that other machines do not have." in out
    )
    [line] = [line for line in out.splitlines() if "--install" in line]
    command = shlex.split(line.replace("git+https://…", "git+https://git.example/f.git"))
    assert main(command[3:]) == 0
    assert "@ git+https://git.example/f.git'" in (folder / GITHUB).read_text("utf-8")


def test_on_a_terminal_the_requirement_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed_from({"url": "file:///nowhere/at/all", "dir_info": {}}, monkeypatch)
    answers_typed(monkeypatch, {"CI service": "github", "Requirement with which CI installs it": "fairness-fork: 2 #x"})
    assert main(["init"]) == 0
    steps = {step.get("name"): step for step in workflow(folder / GITHUB)["jobs"]["fairness"]["steps"]}
    assert steps["Install"]["run"] == "pip install 'fairness-fork: 2 #x'"


GH = """\
#!/usr/bin/env python3
import json, pathlib, sys

notes, arguments = pathlib.Path("notes.json"), sys.argv[1:]
known = json.loads(notes.read_text()) if notes.exists() else {}
if "--jq" in arguments:
    print("\\n".join(known))
else:
    body = next(word for word in arguments if word.startswith("body=@")).removeprefix("body=@")
    address = next(word for word in arguments if word.startswith("repos/"))
    known[address if "PATCH" in arguments else f"{address}/{len(known)}"] = pathlib.Path(body).read_text()
    notes.write_text(json.dumps(known))
"""
"""A stand-in for GitHub's program `gh`, which keeps the comments in a file."""


@pytest.mark.skipif(sys.platform == "win32", reason="the step's shell is bash")
@pytest.mark.parametrize("source", ["workflow", "action"])
def test_the_step_of_github_writes_one_comment_and_changes_it_later(folder: Path, source: str) -> None:
    main(["init", "--ci", "github"])
    action = YAML(typ="safe").load((Path(__file__).parents[3] / "action.yml").read_text("utf-8"))
    steps = workflow(folder / GITHUB)["jobs"]["fairness"]["steps"] if source == "workflow" else action["runs"]["steps"]
    [step] = [step["run"] for step in steps if step.get("name") == "Comment"]
    gh = folder / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(GH.replace("/usr/bin/env python3", sys.executable))
    gh.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{gh.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COMMENTS": "repos/o/r/issues/3/comments",
        "GITHUB_BASE_REF": "main",
    }
    changed_baseline(folder)
    for body in (None, "first\n", "second\n"):
        if body is not None:
            (folder / "fairness.comment.md").write_text(body)
        subprocess.run(["/bin/bash", "-e", "-c", step], cwd=folder, env=environment, check=True)
    [(address, comment)] = json.loads((folder / "notes.json").read_text()).items()
    assert address == "repos/o/r/issues/3/comments/0"
    assert comment.startswith("second\n")
    if source == "workflow":
        assert "## Fairness: changed baselines" in comment
        assert "refusals[name=Kim]" in comment


def changed_baseline(folder: Path) -> str:
    """Commit a baseline that is not on `origin/main`; return the commit of `origin/main`."""
    git = functools.partial(subprocess.run, cwd=folder, check=True, capture_output=True, text=True)
    author = ("-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org")
    git(["git", "init", "-q"])
    git(["git", *author, "commit", "-q", "--allow-empty", "-m", "First"])
    base = git(["git", "rev-parse", "HEAD"]).stdout.strip()
    git(["git", "update-ref", "refs/remotes/origin/main", base])
    measured = Measurement(0.1, (0.0, 0.2), 0.05, 0.3, {"Alex": 10, "Kim": 10}, {})
    entry = Entry.measured(
        measured,
        target="openai:model",
        sampling={},
        fingerprint={},
        date="2026-01-02T03:04:05Z",
        file="probes/first.yaml",
        labels={"name": "Kim"},
        tolerance=0.1,
        contributions={},
    )
    rows = [Row({"name": name}, trial, "Yes.") for name in ("Alex", "Kim") for trial in range(3)]
    update_baseline(folder / "baselines", "first", {"refusals[name=Kim]": entry}, rows)
    git(["git", "add", "baselines"])
    git(["git", *author, "commit", "-q", "-m", "Second"])
    return str(base)


class Notes(BaseHTTPRequestHandler):
    """A stand-in for GitLab's notes of a merge request."""

    notes: ClassVar[dict[int, str]] = {7: "a person's note"}

    def do_GET(self) -> None:
        self.reply([{"id": key, "body": body} for key, body in self.notes.items()])

    def do_POST(self) -> None:
        self.put(len(self.notes) + 10)

    def do_PUT(self) -> None:
        self.put(int(self.path.rpartition("/")[2]))

    def put(self, key: int) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert self.headers["PRIVATE-TOKEN"] == "secret"
        self.notes[key] = parse_qs(form)["body"][0]
        self.reply({})

    def reply(self, content: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.mark.skipif(shutil.which("curl") is None, reason="the job's image has curl")
def test_the_job_of_gitlab_writes_one_comment_and_changes_it_later(folder: Path) -> None:
    main(["init", "--ci", "gitlab"])
    [script] = workflow(folder / GITLAB_JOB)["fairness"]["after_script"]
    with ThreadingHTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever).start()
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4",
            "CI_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_IID": "3",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": changed_baseline(folder),
        }
        for token, body in (("", "unseen"), ("secret", "first"), ("secret", "second\n&=")):
            (folder / "fairness.comment.md").write_text(f"<!-- pytest-fairness -->\n{body}")
            subprocess.run(
                ["/bin/bash", "-e", "-c", script], cwd=folder, env=environment | {"FAIRNESS_TOKEN": token}, check=True
            )
        server.shutdown()
    assert {*Notes.notes} == {7, 11}
    assert Notes.notes[11].startswith("<!-- pytest-fairness -->\nsecond\n&=")
    assert "## Fairness: changed baselines" in Notes.notes[11]


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
    installed_from(None, monkeypatch)
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
    for report in ("fairness.json", "fairness.html", "fairness.comment.md", "junit.xml"):
        assert (project.path / report).stat().st_size > 0
    assert "## Fairness: No check got worse: all 2 passed" in summary.read_text("utf-8")
