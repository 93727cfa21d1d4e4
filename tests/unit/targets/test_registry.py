"""Registry of targets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_fairness.errors import TargetError
from pytest_fairness.targets import check_spec, open_target
from tests.support.asking import settings_in


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("opnai:gpt", "unknown target 'opnai:gpt' .--fairness-target.. Did you mean 'openai:gpt'?"),
        ("Local", "Did you mean 'local'?"),
        ("localhost:8000/ask", "Did you mean 'http://localhost:8000/ask'?"),
        ("local:", "Known targets: local, local:PATH.gguf, openai:MODEL, anthropic:MODEL, litellm:PROVIDER/MODEL, "),
        ("", "unknown target ''"),
        ("openai:", "unknown target 'openai:' .--fairness-target.. Known targets: "),
        ("gpt-5", "A target begins with its kind, such as 'openai:gpt-5'"),
        ("openai", "'openai' names no model; write openai:MODEL"),
        ("anthropic", "'anthropic' names no model; write anthropic:MODEL"),
        ("http", "'http:' is not an address; write it like http://localhost:8000/recommend|unknown target 'http'"),
        ("http:shop", "'http:shop' is not an address"),
        ("https://", "'https://' is not an address"),
        ("python:app", "'python:app' names no callable; write python:package.module:callable"),
        ("python::f", "names no callable"),
        ("python:my-app:f", "names no callable"),
        ("local:no-such.gguf", r"no-such.gguf cannot be read: No such file"),
    ],
)
def test_invalid_names_are_explained(tmp_path: Path, spec: str, said: str) -> None:
    with pytest.raises(TargetError, match=said.replace("?", r"\?")):
        open_target(spec, settings_in(tmp_path))


def test_an_invalid_base_url_is_rejected(tmp_path: Path) -> None:
    for url in ("localhost:8000/v1", "ftp://host/v1", "http://", "http://[::1", "http://host:port"):
        with pytest.raises(TargetError, match="is not an address; write it like"):
            open_target("openai:model", settings_in(tmp_path, url))


def test_checking_finds_a_missing_key_without_sending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="set the environment variable OPENAI_API_KEY, or name a server of your own"):
        check_spec("openai:model", settings_in(tmp_path))
    check_spec("openai:model", settings_in(tmp_path, "http://localhost:1/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    check_spec("openai:model", settings_in(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1\u2026")
    with pytest.raises(TargetError, match="has characters that cannot be sent"):
        check_spec("openai:model", settings_in(tmp_path))


def test_checking_finds_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_fairness.targets.local.find_spec", lambda _: None)
    with pytest.raises(
        TargetError, match=r"local needs the package xllamacpp: pip install \"pytest-fairness\[local\]\""
    ):
        check_spec("local", settings_in(tmp_path))


def test_making_a_target_imports_none_of_its_libraries(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from pytest_fairness.options import RunSettings
from pytest_fairness.targets import open_target
for spec in ("local", "openai:model", "transformers:gpt2", "python:app:polite"):
    open_target(spec, RunSettings(root=Path({str(tmp_path)!r})))
assert not {{"aiohttp", "xllamacpp", "httpx2", "torch", "transformers", "app"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
