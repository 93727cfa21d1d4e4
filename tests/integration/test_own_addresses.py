"""Two targets in one run, each with an address and a key of its own."""

from __future__ import annotations

import pytest

from tests.support.projects import Project, ini
from tests.support.servers import ChatServer


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_each_target_is_asked_at_its_address_with_its_key(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine-4711")
    monkeypatch.setenv("THEIR_KEY", "sk-theirs-4711")
    project.probe()
    with ChatServer() as mine, ChatServer() as theirs:
        lines = (
            f"mine = openai:m base_url={mine.url}?q=4711",
            f"theirs = openai:m base_url={theirs.url} api_key_env=THEIR_KEY",
        )
        project.write("pytest.ini", ini(fairness_target="\n".join(("", *lines)).replace("\n", "\n  ")))
        result = project.run("--fairness", "-vv", "--fairness-report", "report.json", *workers, target=None)
        result.assert_outcomes(passed=4)
        assert set(mine.keys) == {"Bearer sk-mine-4711"}
        assert set(theirs.keys) == {"Bearer sk-theirs-4711"}
    files = [
        path
        for path in project.path.rglob("*")
        if path.is_file() and path.name not in ("stdout", "stderr", "pytest.ini")
    ]
    assert not [path for path in files if b"4711" in path.read_bytes()]
    assert "4711" not in result.stdout.str()
