"""Location of models: an id of the Hugging Face Hub, a folder, or a GGUF file."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness.errors import TargetError
from pytest_fairness.targets.transformers import file_digest

_HUB_ID = re.compile(r"(?P<id>[A-Za-z0-9][\w.-]*(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?")
_CONFIGURATION = (".json", ".jinja", ".txt", ".model")
"""Suffixes of configuration and tokenizer files, which the digest of a folder covers besides the weights."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True)
class Weights:
    """Location and version of a model.

    Attributes:
        place: a folder, or an id of the Hub.
        gguf: name of the GGUF file in the folder, if the model is a GGUF file.
        revision: for a model of the Hub, the cached commit or, if none is cached, the revision that the user named.
        digest: for a local model, the digest of its files.
        local: whether the model is a file or folder of this machine.
        cached: whether a model of the Hub is in the cache; `True` for a local model.
    """

    place: str
    gguf: str | None = None
    revision: str | None = None
    digest: str | None = None
    local: bool = True
    cached: bool = True

    @property
    def label(self) -> str:
        """Return the name for reports: the id of the Hub, or the name of the folder or file."""
        return (self.gguf or Path(self.place).name) if self.local else self.place


def find(written: str, root: Path) -> Weights:
    """Return the location and version of a model; load and download nothing.

    Args:
        written: a path, relative to `root`, or an id of the Hub, optionally with `@revision`.
        root: pytest's rootdir.

    Raises:
        TargetError: the file or folder does not exist, or contains no weights that are safe to load.
    """
    path = root / Path(written).expanduser()
    name = f"transformers:{written}"
    if path.is_file():
        if path.suffix.casefold() != ".gguf":
            raise TargetError(
                f"{name}: {path.name} is not a .gguf file. Name the model's folder or a .gguf file (--fairness-target)."
            )
        return _weights_of_file(path, name)
    if path.is_dir():
        return _weights_of_folder(path, name)
    identifier = _HUB_ID.fullmatch(written)
    if identifier is None or path.suffix.casefold() == ".gguf":
        raise TargetError(f"{name}: the file or folder {path} does not exist. Check the path (--fairness-target).")
    cached = cached_commit(identifier["id"], identifier["revision"] or "main")
    revision = cached or identifier["revision"]
    return Weights(identifier["id"], revision=revision, local=False, cached=cached is not None)


def cached_commit(identifier: str, revision: str) -> str | None:
    """Return the commit of a Hub model's revision; `None` if the commit is not in the cache."""
    folder = _hub_cache() / f"models--{identifier.replace('/', '--')}"
    reference = folder / "refs" / revision
    try:
        commit = reference.read_text("utf-8").strip() if reference.is_file() else revision
    except (OSError, UnicodeDecodeError):
        return None
    return commit if (folder / "snapshots" / commit / "config.json").exists() else None


def _hub_cache() -> Path:
    """Return the cache folder of the Hub's client, which environment variables may change."""
    for variable, *parts in (("HF_HUB_CACHE",), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface", "hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable], *parts).expanduser()
    return Path.home() / ".cache" / "huggingface" / "hub"


def _weights_of_file(path: Path, name: str) -> Weights:
    return Weights(str(path.parent), gguf=path.name, digest=file_digest.digest(path, name))


def _weights_of_folder(folder: Path, name: str) -> Weights:
    if not (folder / "config.json").is_file():
        models = sorted(folder.glob("*.gguf"))
        if len(models) == 1:
            return _weights_of_file(models[0], name)
        if models:
            raise TargetError(
                f"{name}: {folder} contains several models. Name one of them: "
                f"{', '.join(model.name for model in models)} (--fairness-target)."
            )
        raise TargetError(
            f"{name}: {folder} contains no model: neither a config.json nor a .gguf file. Check the path "
            "(--fairness-target)."
        )
    shards = sorted(folder.glob("*.safetensors"))
    if not shards:
        if any(next(folder.glob(pattern), None) for pattern in _PICKLES):
            raise TargetError(
                f"{name}: {folder} contains its weights as pickles, which can run code and are not loaded; convert "
                f"them to safetensors (`save_pretrained` of transformers writes these)."
            )
        raise TargetError(f"{name}: {folder} contains no weights. Copy the model's *.safetensors files there.")
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.suffix in _CONFIGURATION and file.is_file()):
        digest.update(f"{file.name}\0".encode())
        digest.update(file.read_bytes())
    for shard in shards:
        digest.update(f"{shard.name}\0{file_digest.digest(shard, name)}".encode())
    return Weights(str(folder), digest=f"sha256 of files:{digest.hexdigest()}")
