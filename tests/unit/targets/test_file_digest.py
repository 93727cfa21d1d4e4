"""Fingerprints of files of weights, and their cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.targets import transformers_models
from pytest_fairness.targets.transformers_models import CACHE_NAME, sha256

OLD = (1_000_000_000.0, 1_000_000_000.0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A line for each file that is read whole; the user's cache is a folder of its own."""
    found: list[str] = []
    original = hashlib.file_digest

    def file_digest(content: Any, name: str) -> Any:
        found.append(name)
        return original(content, name)

    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(hashlib, "file_digest", file_digest)
    return found


def written(path: Path, content: bytes) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, OLD)
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_read_once_for_each_state(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "models" / "one.gguf"
    for content in (b"first", b"other"):  # of one size, and one date
        digest = written(path, content)
        assert [sha256(path), sha256(path)] == [digest, digest]
    second = written(path.with_name("two.gguf"), b"second")
    assert [sha256(path.with_name("two.gguf")) for _ in range(2)] == [second, second]
    assert sha256(path) == digest
    assert len(reads) == 3
    assert sorted(each.name for each in path.parent.iterdir()) == [CACHE_NAME, "one.gguf", "two.gguf"]


def test_a_digest_of_a_file_written_just_now_is_not_cached(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "one.gguf"
    path.write_bytes(b"first")
    assert sha256(path) == sha256(path)
    assert len(reads) == 2


@pytest.mark.parametrize("beside", ["folder", "damaged"])
def test_digests_of_a_read_only_folder_are_cached_for_the_user(tmp_path: Path, reads: list[str], beside: str) -> None:
    path = tmp_path / "models" / "one.gguf"
    digest = written(path, b"first")
    if beside == "folder":
        (path.parent / CACHE_NAME).mkdir()
    else:
        (path.parent / CACHE_NAME).write_text('{"a": [')
    assert [sha256(path), sha256(path)] == [digest, digest]
    assert len(reads) == 1


def test_the_digest_of_a_folder_depends_on_the_whole_content_of_its_files(tmp_path: Path, reads: list[str]) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    digests = set()
    for middle in (b"a", b"b"):
        written(tmp_path / "model" / "model.safetensors", b"x" * 3_000_000 + middle + b"x" * 3_000_000)
        digests |= {transformers_models.find_weights("model", tmp_path).digest for _ in range(2)}
    assert len(digests) == 2
    assert len(reads) == 2
