"""Shell commands in messages: they work in the user's shell and working directory."""

import re
import subprocess
import sys

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import Project, ini

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shell is bash")
PROBE = """
kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: ["Kim [the] O'Neil", "Lou $HOME & co"]}
trials: 10
audits:
  refusals: {gate: point}
"""
TARGET = "--fairness-target python:app:polite"
COMMAND = re.compile(r"^(?:.*: )?(?:E +| +)?((?:pytest|python) (?:.*\\\n)*.*)$", re.MULTILINE)


class Shell:
    """A working directory and a shell that splits command lines; the words run in this process."""

    def __init__(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.monkeypatch = monkeypatch
        monkeypatch.setenv("COLUMNS", "80")

    def go(self, name: str) -> None:
        """Change the working directory."""
        path = self.project.path / name
        path.mkdir(exist_ok=True)
        self.monkeypatch.chdir(path)

    def run(self, command: str) -> pytest.RunResult:
        """Run `pytest …`."""
        program, *words = self.words(command)
        assert program == "pytest"
        return self.project.run(*words, target=None)

    def words(self, command: str) -> list[str]:
        """Return the words into which the shell splits a command."""
        script = f"""say() {{ printf '%s\\0' "$@"; }}; alias pytest='say pytest' python='say python'\n{command}"""
        run = subprocess.run(
            ["/bin/bash", "-O", "expand_aliases", "-c", script], check=True, capture_output=True, text=True
        )
        return run.stdout.split("\0")[:-1]


@pytest.fixture
def shell(project: Project, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(project, monkeypatch)


def commands(output: str, start: str) -> list[str]:
    """Return the different commands in an output that begin with `start`."""
    return list(dict.fromkeys(found for found in COMMAND.findall(output) if found.startswith(start)))


def summary_of(output: str) -> str:
    return output.partition("= fairness =")[2].partition("= short test summary info =")[0]


@pytest.mark.parametrize("where", [".", "deep"])
def test_commands_in_reasons_and_in_the_summary_make_baselines(project: Project, shell: Shell, where: str) -> None:
    project.probe(text=PROBE)
    shell.go(where)
    first = shell.run(f"pytest --fairness --fairness-report {project.path}/report.json {TARGET}")
    assert first.ret == 1
    found = "\n".join(item["reason"] for item in project.read("report.json")["items"])
    reasons = commands(found, "pytest --fairness-rebaseline")
    assert len(reasons) == 2
    assert shell.run(reasons[0]).ret == 0
    items = project.read("baselines/gifts.json")["items"]
    assert list(items) == ["refusals[name=Kim [the] O'Neil]"]
    [accept] = commands(summary_of(first.stdout.str()), "pytest --fairness-rebaseline")
    assert accept.endswith("probes/gifts.yaml"), "all items of the file"
    accepted = shell.run(accept)
    assert accepted.ret == 0, accepted.stdout.str()
    assert len(project.read("baselines/gifts.json")["items"]) == 2
    assert shell.run(f"pytest --fairness {TARGET}").ret == 0


def test_the_accept_command_sends_the_same_requests(project: Project, shell: Shell) -> None:
    """The run uses another configuration file, ini options on the command line, and marks that the file deselects."""
    project.probe(text=PROBE + "marks: [slow]\n")
    settings = ini(markers="slow: takes long", addopts="-m 'not slow'", fairness_target="python:app:polite")
    project.write("ci/fair.ini", settings + "pythonpath = ..\n")
    first = shell.run("pytest -c ci/fair.ini --rootdir . -o fairness_baselines='kept here' -m slow --fairness")
    assert first.ret == 1, first.stdout.str()
    [accept] = commands(summary_of(first.stdout.str()), "pytest --fairness-rebaseline")
    accepted = shell.run(accept)
    assert accepted.ret == 0, accept + accepted.stdout.str()
    assert (project.path / "kept here" / "gifts.json").exists()


def test_the_accept_command_works_for_probes_outside_of_the_project(project: Project, shell: Shell) -> None:
    project.write("shared/gifts.yaml", PROBE)
    project.write("team/pytest.ini", ini(fairness_probes="../shared", fairness_target="python:app:polite"))
    (project.path / "app.py").rename(project.path / "team" / "app.py")
    (project.path / "pytest.ini").unlink()
    shell.go("team")
    first = shell.run("pytest --fairness")
    assert first.ret == 1, first.stdout.str()
    [accept] = commands(summary_of(first.stdout.str()), "pytest --fairness-rebaseline")
    accepted = shell.run(accept)
    assert accepted.ret == 0, accept + accepted.stdout.str()
    assert (project.path / "team" / "baselines" / "gifts.json").exists()


@pytest.mark.parametrize(("where", "store"), [(".", ""), ("deep", ""), (".", "kept/the answers.sqlite")])
def test_the_command_in_the_error_exports_unusable_answers(
    project: Project, shell: Shell, where: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    project.probe(text=PROBE.replace("trials", "answer: {format: json}\ntrials").replace("refusals", "jsd"))
    project.write("pytest.ini", ini(fairness_store=store))
    shell.go(where)
    first = shell.run(f"pytest --fairness {TARGET}")
    assert first.ret == 1
    [export, *others] = commands(summary_of(first.stdout.str()), "python -m pytest_fairness export")
    assert not others
    capsys.readouterr()
    assert main(shell.words(export)[3:]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 30


def test_the_command_in_the_error_remakes_a_damaged_baseline(project: Project, shell: Shell) -> None:
    project.probe("probes/the gifts.yaml", "name: gifts\n" + PROBE)
    assert shell.run(f"pytest --fairness-rebaseline {TARGET}").ret == 0
    baseline = project.path / "baselines" / "gifts.json"
    baseline.write_text("{}", "utf-8")
    result = shell.run(f"pytest --fairness {TARGET}")
    assert result.ret == 1
    baseline.unlink()
    [make] = commands(summary_of(result.stdout.str()), "pytest --fairness-rebaseline")
    assert shell.run(make).ret == 0
    assert baseline.exists()


def test_the_command_in_the_error_restores_a_damaged_baseline(project: Project, shell: Shell) -> None:
    project.probe(text=PROBE)
    project.write("pytest.ini", ini(fairness_baselines="kept baselines"))
    shell.go("deep")
    assert shell.run(f"pytest --fairness-rebaseline {TARGET}").ret == 0
    who = "-c user.name=a -c user.email=a@example.org"
    git = f"cd .. && git init -q . && git add . && git {who} commit -qm all"
    subprocess.run(["/bin/bash", "-c", git], check=True)
    baseline = project.path / "kept baselines" / "gifts.json"
    before = baseline.read_bytes()
    baseline.write_text("<<<<<<< ours", "utf-8")
    result = shell.run(f"pytest --fairness -v {TARGET}")
    restore = re.search("`(git checkout .*?)`", " ".join(result.stdout.str().split()))
    assert restore is not None
    subprocess.run(["/bin/bash", "-c", restore[1]], check=True)
    assert baseline.read_bytes() == before
    # Its other cure: delete it, and make another.
    baseline.unlink()
    [make] = commands(" ".join(result.stdout.str().split()).partition("Command: ")[2].partition(" ==")[0], "pytest")
    assert shell.run(make).ret == 0
    assert baseline.exists()


def test_the_command_in_the_message_removes_baselines_without_an_item(project: Project, shell: Shell) -> None:
    project.probe(text=PROBE)
    shell.go("deep")
    shell.run(f"pytest --fairness-rebaseline {TARGET}")
    project.probe(text=PROBE.replace(', "Lou $HOME & co"', ""))
    result = shell.run(f"pytest --fairness {TARGET}")
    [remove] = commands(summary_of(result.stdout.str()).partition("To accept")[0], "pytest --fairness-rebaseline")
    assert shell.run(remove).ret == 0
    assert list(project.read("baselines/gifts.json")["items"]) == ["refusals[name=Kim [the] O'Neil]"]


def test_the_accept_command_contains_no_secrets(project: Project, shell: Shell) -> None:
    project.probe(text=PROBE)
    secrets = (
        "-o 'fairness_http_headers=X-Key: s3cret' -o fairness_embeddings_base_url=https://me:s3cret@example.org/v1"
    )
    result = shell.run(f"pytest --fairness --fairness-report report.json {secrets} {TARGET}")
    assert result.ret == 1
    [accept] = commands(summary_of(result.stdout.str()), "pytest --fairness-rebaseline")
    assert "-o fairness_embeddings_base_url=https://example.org/v1" in " ".join(shell.words(accept))
    assert "s3cret" not in accept
    assert "s3cret" not in (project.path / "report.json").read_text("utf-8")


CHANGING = """
import itertools
import os
import sys
from pathlib import Path

CALLS = Path(__file__).with_name("calls.txt")
KIMS = itertools.count()
ANSWERS = itertools.count()

def changing(prompt):
    with CALLS.open("a") as file:
        file.write("call\\n")
    refused = "Kim" in prompt and next(KIMS) < int(os.environ["REFUSED"])
    word = ("pleasure", "joy", "delight", "care", "comfort")[next(ANSWERS) % 5]
    return "I'm sorry, but I can't help with that." if refused else f"Yes, with {word}."
"""
CHANGED = """
kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: [Kim]}
trials: TRIALS
audits:
  refusals: {tolerance: 0.1}
"""


def changing(project: Project, monkeypatch: pytest.MonkeyPatch, trials: str = "40") -> None:
    project.write("service.py", CHANGING)
    project.probe(text=CHANGED.replace("TRIALS", trials))
    monkeypatch.setenv("REFUSED", "0")


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
@pytest.mark.parametrize("earlier", ["a baseline", "no baseline"])
def test_the_command_accepts_the_reported_values(
    project: Project, shell: Shell, monkeypatch: pytest.MonkeyPatch, earlier: str, workers: tuple[str, ...]
) -> None:
    changing(project, monkeypatch)
    target = "--fairness-target python:service:changing"
    if earlier == "a baseline":
        shell.run(f"pytest --fairness-rebaseline {target}")
    monkeypatch.setenv("REFUSED", "33")
    out = "--fairness-report report.json --fairness-report pr.comment.md"
    first = shell.run(f"pytest --fairness {out} {target} {' '.join(workers)}")
    (item,) = project.read("report.json")["items"]
    assert item["verdict"] == ("regression" if earlier == "a baseline" else "no-baseline")
    (accept,) = commands(summary_of(first.stdout.str()), "pytest --fairness-rebaseline")
    text, _, _ = (project.path / "pr.comment.md").read_text("utf-8").partition("<details>")
    comment = commands(text, "pytest --fairness-rebaseline")
    assert comment
    in_reason = commands(item["reason"], "pytest --fairness-rebaseline")
    calls, baselines = len(project.calls()), set()
    monkeypatch.setenv("REFUSED", "7")
    for command in [accept, accept, *comment, *in_reason]:
        assert shell.run(command).ret == 0
        (entry,) = project.read("baselines/gifts.json")["items"].values()
        assert entry["value"] == pytest.approx(item["value"], abs=1e-6)
        baselines.add((project.path / "baselines/gifts.json").read_bytes())
    assert len(project.calls()) == calls, "no request is sent"
    assert len(baselines) == 1


def test_an_item_decided_early_is_not_accepted_from_too_few_answers(
    project: Project, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing(project, monkeypatch, "{start: 20, max: 80}")
    target = "--fairness-target python:service:changing"
    shell.run(f"pytest --fairness-rebaseline {target}")
    monkeypatch.setenv("REFUSED", "1000")
    first = shell.run(f"pytest --fairness {target}")
    (accept,) = commands(summary_of(first.stdout.str()), "pytest --fairness-rebaseline")
    assert "--fairness-replay" not in accept
    assert shell.run(accept).ret == 0
    (entry,) = project.read("baselines/gifts.json")["items"].values()
    assert sum(entry["n"].values()) == 2 * 80
