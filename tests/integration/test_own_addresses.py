"""Two targets in one run, each with an address and a key of its own."""

from __future__ import annotations

import pytest

from tests.support.projects import Project, ini
from tests.support.servers import ChatServer


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_each_target_is_asked_at_its_address_with_its_key(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine-zq4711zq")
    monkeypatch.setenv("THEIR_KEY", "sk-theirs-zq4711zq")
    project.probe()
    with ChatServer() as mine, ChatServer() as theirs:
        lines = (
            f"mine = openai:m base_url={mine.url}?q=zq4711zq",
            f"theirs = openai:m base_url={theirs.url} api_key_env=THEIR_KEY",
        )
        project.write("pytest.ini", ini(fairness_target="\n".join(("", *lines)).replace("\n", "\n  ")))
        result = project.run("--fairness", "-vv", "--fairness-report", "report.json", *workers, target=None)
        result.assert_outcomes(passed=4)
        assert set(mine.keys) == {"Bearer sk-mine-zq4711zq"}
        assert set(theirs.keys) == {"Bearer sk-theirs-zq4711zq"}
    files = [
        path
        for path in project.path.rglob("*")
        if path.is_file() and path.name not in ("stdout", "stderr", "pytest.ini")
    ]
    assert not [path for path in files if b"zq4711" in path.read_bytes()]
    assert "zq4711" not in result.stdout.str()
