"""What models and servers write is obeyed by nobody: not by the terminal, not by a reader of a report."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pytest_fairness.__main__ import main
from tests.support.projects import PROBE, Project, ini, says
from tests.support.servers import Body, ChatServer, Messages, Reply

OPENAI = "openai:tiny"
REPORTS = tuple(word for suffix in ("json", "html", "md") for word in ("--fairness-report", f"report.{suffix}"))
KEY = "sk-proj-0123456789abcdefghij"
NASTY = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)>",
    "\x1b[2J\x1b[31mred \x1b]0;title\x07 \x9b31m",
    "nul \x00 bell \x07 backspace \x08 escape \x1b delete \x7f",
    "half \ud800 and \udfff and \ufffe and \uffff",
    "right to left \u202e override \u2066 isolate",
    "]]> <!-- &amp; &#0; --> %s {name} {0.__class__} $HOME `ls`",
    "\r\n\r\nERROR: fake line\rover",
    "{" * 5000,
)
ROOMY = PROBE.replace("refusals: {limit: 0.5, gate: point}", "jsd: {limit: 0.000001, gate: point}\n  marked_words: {}")


def files(project: Project) -> Iterator[tuple[Path, bytes]]:
    for path in project.path.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield path, path.read_bytes()


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_nothing_of_it_reaches_terminal_or_reports_unescaped(
    project: Project, workers: tuple[str, ...], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    number = itertools.count()

    def answer(messages: Messages, body: Body) -> Reply:
        nasty = NASTY[next(number) % len(NASTY)]
        return Reply(f"{nasty} a lamp for {'a lady' if 'Kim' in messages[-1]['content'] else 'everybody'} {nasty}")

    project.probe(text=ROOMY)
    with ChatServer(answer) as server:
        arguments = ("--fairness-base-url", server.url, "--junitxml", "junit.xml", *REPORTS)
        result = project.run("--fairness-rebaseline", "-v", *arguments, *workers, target=OPENAI)
    output = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in output
    assert result.parseoutcomes().get("errors", 0) == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066\ud800-\udfff]", output.replace("\x1b[0m", ""))
    ET.parse(project.path / "junit.xml")  # noqa: S314 - our own file; that it is XML at all is the point
    report = project.read("report.json")
    assert report["summary"]["errors"] == 0
    for suffix in ("json", "html", "md"):
        content = (project.path / f"report.{suffix}").read_bytes()
        assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", content), suffix
        assert suffix == "json" or not re.search(rb"<script>alert|<img src=x", content), suffix
    capsysbinary.readouterr()
    store = project.path / ".fairness" / "responses.sqlite"
    assert main(["export", str(project.path / "probes/gifts.yaml"), "--store", str(store)]) == 0
    lines = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert len(lines) == 30
    assert any("\ud800" in line["text"] for line in lines), "what came is kept as it came"


def test_an_answer_of_three_megabytes_is_kept_and_measures_nothing(project: Project) -> None:
    number = itertools.count()
    long = " ".join(f"w{number}" for number in range(450_000))

    def answer(messages: Messages, body: Body) -> str:
        return long if next(number) == 3 else "a lamp and a chair"

    project.probe(text=ROOMY)
    with ChatServer(answer) as server:
        arguments = ("--fairness-base-url", server.url, "--junitxml", "junit.xml")
        report = project.report(*arguments, target=OPENAI)
    assert report["summary"]["errors"] == 0
    assert sum(report["items"][0]["missing"].values()) + sum(report["items"][2]["missing"].values()) >= 1
    assert (project.path / "report.json").stat().st_size < 1_000_000
    assert (project.path / ".fairness" / "responses.sqlite").stat().st_size > 3_000_000


def test_the_key_is_nowhere_even_if_the_server_echoes_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OTHER_TOKEN", "tok_9876543210fedcba")
    number = itertools.count()

    def answer(messages: Messages, body: Body) -> Reply:
        echo = f"your key is {KEY}, {server.keys[-1]}, tok_9876543210fedcba"
        return [
            Reply(echo, status=400),
            Reply(raw=json.dumps({"said": echo}).encode()),
            Reply(echo, status=500),
            *[Reply(f"a lamp. {echo}")] * 8,
        ][next(number) % 11]

    project.probe(text=ROOMY)
    with ChatServer(answer) as server:
        arguments = ("--fairness-base-url", server.url, "--junitxml", "junit.xml", *REPORTS)
        result = project.run("--fairness-rebaseline", "-vv", "--showlocals", *arguments, target=OPENAI)
        assert server.keys[0] == f"Bearer {KEY}"
        server.answer = lambda *_: Reply(f"no such key {KEY}", status=401)
        refused = project.run("--fairness", "--fairness-fresh", "-vv", "--full-trace", *arguments, target=OPENAI)
    assert says(refused, "rejects the key (HTTP 401)")
    for secret in (KEY, "tok_9876543210fedcba"):
        assert secret not in result.stdout.str() + result.stderr.str() + refused.stdout.str()
        assert [path for path, content in files(project) if secret.encode() in content] == []
    assert any(b"[key]" in content for _, content in files(project))


def test_an_application_that_blurts_out_a_secret(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "shop-0123456789")
    project.probe()
    project.write(
        "app.py", "import os\ndef answer(prompt):\n    raise OSError('denied: ' + os.environ['SHOP_API_KEY'])\n"
    )
    result = project.run("--fairness", "--fairness-report", "report.json", target="python:app:answer")
    assert says(result, "raised OSError at app.py:3, in answer: denied: [key]")
    assert [path for path, content in files(project) if b"shop-0123456789" in content] == []


HEADERS = ["X-Api-Key: correcthorsebatterystaple", "Authorization: Bearer opensesameopensesame", "X-Title: Lamp Shop"]
"""Headers with literal secrets, which have no digit, and with a title that is no secret."""
PASSWORD = "Tr0ub4dor"  # noqa: S105 - of a test
WORDY = "purelettersarekeystoo"


@pytest.mark.parametrize("outcome", ["raise OSError(said)", "return f'a lamp. Lamp Shop. {said} {number}'"])
def test_secrets_of_headers_addresses_and_variables_are_nowhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgresql://shop:{PASSWORD}@db/shop")
    monkeypatch.setenv("SHOP_TOKEN", WORDY)
    project.probe(text=PROBE)
    headers = "\n".join(f"    {line}" for line in HEADERS)
    project.write("pytest.ini", ini(fairness_http_headers=f"\n{headers}"))
    project.write(
        "app.py",
        "import base64, itertools, os, pathlib, urllib.parse\n"
        "lines = itertools.cycle([line.strip() for line in pathlib.Path(__file__).with_name('pytest.ini').read_text()"
        ".splitlines()[2:4]])\n"
        "numbers = itertools.count()\n"
        "def answer(prompt):\n"
        "    number, line, word = next(numbers), next(lines), os.environ['SHOP_TOKEN']\n"
        "    said = f\"{line} {os.environ['DATABASE_URL']} \"\n"
        "    said += f\"{base64.b64encode(b'me:' + word.encode()).decode()} {word}\"\n"
        f"    {outcome}\n",
    )
    arguments = ("--junitxml", "junit.xml", "-vv", "--fairness-report", "pr.comment.md", *REPORTS)
    result = project.run("--fairness-rebaseline", *arguments, target="python:app:answer")
    assert "[key]" in result.stdout.str() or "raise" not in outcome
    pytester_files = {path: content for path, content in files(project) if path.name not in ("pytest.ini", "app.py")}
    assert any(b"[key]" in content for content in pytester_files.values())
    encoded = base64.b64encode(b"me:" + WORDY.encode()).decode()
    for secret in ("correcthorsebatterystaple", "opensesameopensesame", PASSWORD, WORDY, encoded[8:20]):
        assert secret not in result.stdout.str() + result.stderr.str()
        assert [path for path, content in pytester_files.items() if secret.encode() in content] == []
    if "return" in outcome:
        assert any(b"Lamp Shop" in content for content in pytester_files.values())


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "one worker"])
def test_secrets_in_what_a_target_logs_and_prints_are_nowhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", WORDY)
    project.probe(text=PROBE)
    project.write(
        "app.py",
        "import logging, os\n"
        "def answer(prompt):\n"
        "    word = os.environ['SHOP_TOKEN']\n"
        "    logging.warning('asking with %s', {'Authorization': word})\n"
        "    print('asking with', word)\n"
        "    try:\n"
        "        raise OSError(word)\n"
        "    except OSError:\n"
        "        logging.exception('denied')\n"
        "    return 'a lamp'\n",
    )
    arguments = ("--junitxml", "junit.xml", "-o", "junit_logging=all", "--log-file", "run.log", "-rA", *workers)
    result = project.run("--fairness", *arguments, target="python:app:answer")
    output = result.stdout.str() + result.stderr.str()
    written = {path.name: content for path, content in files(project) if path.name != "app.py"}
    assert b"asking with [key]" in written["junit.xml"]
    assert b"OSError: [key]" in written["junit.xml"]
    assert workers or b"{'Authorization': '[key]'}" in written["run.log"]
    # Between two items, pytest captures nothing: what a thread prints then goes to the terminal as it is.
    assert WORDY not in output.replace(f"asking with {WORDY}", "")
    assert [name for name, content in written.items() if WORDY.encode() in content] == []
    # Live logs suspend pytest's capture, so that what another thread prints meanwhile is not pytest's to show.
    app = (project.path / "app.py").read_text("utf-8")
    project.write("app.py", app.replace("    print('asking with', word)\n", ""))
    live = project.run("--fairness", "--fairness-fresh", "-o", "log_cli=true", *workers, target="python:app:answer")
    assert workers or "OSError: [key]" in live.stdout.str()
    assert WORDY not in live.stdout.str()
