"""Models that `transformers` loads: their weights, the digests of their files, and batches of requests."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import platformdirs

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError, one_line
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.resources import replace_file
from pytest_fairness.targets.base import PAUSE, DaemonThreads

# Models and tokenizers loaded with `transformers`.
#
# Only this module and `targets/transformers.py` use torch, which is imported when a model is loaded.


class LoadedModel:
    """Model and tokenizer in memory, loaded by the class `auto_class` of `transformers`.

    Raises:
        TargetError: torch cannot use the device; or the model is missing, cannot be downloaded or loaded with this
            class, does not fit into memory, or has no fast tokenizer.
    """

    auto_class: ClassVar[str]

    def __init__(self, name: str, weights: Weights, device: str | None) -> None:
        self._name = name
        # OpenMP threads that wait by spinning are slow on shared cores.
        if "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault("GOMP_SPINCOUNT", "0")
        with _quiet():
            import torch

            self._torch = torch
            self.device = self._device(device)
            self._tokenizer, self._model = self._load(weights)
        self._context: int | None = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)

    def _device(self, wanted: str | None) -> Any:
        torch = self._torch
        if wanted is None:
            best = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
            return torch.device(best)
        try:
            device = torch.device(wanted)
            torch.zeros(1, device=device)
        except Exception as error:
            raise TargetError(
                f"{self._name}: torch cannot use the device {wanted!r} ({one_line(error, 100)}). Name cpu, cuda, "
                "cuda:1 or mps."
            ) from error
        return device

    def _load(self, weights: Weights) -> tuple[Any, Any]:
        """Load the tokenizer and the model; run no Python code of the model and read no pickle."""
        import transformers

        place: dict[str, Any] = {"trust_remote_code": False}
        if weights.revision is not None:
            place["revision"] = weights.revision
        if weights.gguf is not None:
            place["gguf_file"] = weights.gguf
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(weights.place, **place)
            model = getattr(transformers, self.auto_class).from_pretrained(
                weights.place, use_safetensors=True, dtype=self._number_type(weights), **place
            )
            model = model.to(self.device).eval()
        except self._torch.OutOfMemoryError as error:
            raise TargetError(
                f"{self._name}: the model does not fit into the memory of {self.device}. Use a smaller model, or "
                "another device (environment variable CUDA_VISIBLE_DEVICES)."
            ) from error
        except Exception as error:
            raise TargetError(self._load_error_text(weights, error)) from error
        if not tokenizer.is_fast:
            raise TargetError(
                f"{self._name}: the model has no fast tokenizer (tokenizer.json). Use a model that has one."
            )
        return tokenizer, model

    def _number_type(self, weights: Weights) -> Any:
        """Return float32 on a CPU; elsewhere bfloat16 for GGUF files, and the stored type for other models."""
        if self.device.type == "cpu":
            return self._torch.float32
        return "auto" if weights.gguf is None else self._torch.bfloat16

    def _load_error_text(self, weights: Weights, error: Exception) -> str:
        said = one_line(error, 300)
        if weights.local or weights.cached:
            return (
                f"{self._name}: the model cannot be loaded: {type(error).__name__}: {said.removesuffix('.')}. Check "
                "that its files are complete and of the right kind of model, or use another model."
            )
        return (
            f"{self._name}: the model is not in the cache, and cannot be downloaded or loaded ({said}). Check its "
            f"name. Without a network, run `hf download {weights.place}` on a machine that has one, copy the model's "
            "files to this machine, and name their folder: transformers:FOLDER."
        )

    @contextmanager
    def _memory_errors(self) -> Iterator[None]:
        """Convert torch's out-of-memory errors into `OutOfMemory`, and free the memory."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error, self._torch):
                raise
        else:
            return
        # Outside of the `except` block, because the exception keeps the tensors alive inside of it.
        gc.collect()
        if self.device.type == "cuda":
            self._torch.cuda.empty_cache()
        raise OutOfMemory


def _is_out_of_memory(error: BaseException, torch: Any) -> bool:
    said = str(error).casefold()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "out of memory" in said or "can't allocate memory" in said or "not enough memory" in said
    )


def ids_of(encoded: Any) -> list[int]:
    ids: list[int] = encoded["input_ids"]
    return ids


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings and progress bars of transformers while a model is loaded; errors are still raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.utils import logging

        level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity(logging.CRITICAL)
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()


# Location of models: an id of the Hugging Face Hub, a folder, or a GGUF file.

_HUB_ID = re.compile(r"(?P<id>[A-Za-z0-9][\w.-]*(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?")
_CONFIGURATION = (".json", ".jinja", ".txt", ".model")
"""Suffixes of configuration and tokenizer files, which the digest of a folder covers besides the weights."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True)
class Weights:
    """Location and version of a model.

    Attributes:
        revision: for a model of the Hub, the cached commit or, if none is cached, the revision that the user named.
        digest: for a local model, the digest of its files.
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
        """Return the name for reports."""
        return (self.gguf or Path(self.place).name) if self.local else self.place


def find_weights(written: str, root: Path) -> Weights:
    """Return the location and version of a model; load and download nothing.

    `written` is a path, relative to `root`, or an id of the Hub, optionally with `@revision`.

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
    """Return the commit of a Hub model's revision; `None` if it is not in the cache."""
    folder = _hub_cache() / f"models--{identifier.replace('/', '--')}"
    reference = folder / "refs" / revision
    try:
        commit = reference.read_text("utf-8").strip() if reference.is_file() else revision
    except (OSError, UnicodeDecodeError):
        return None
    return commit if (folder / "snapshots" / commit / "config.json").exists() else None


def _hub_cache() -> Path:
    for variable, *parts in (("HF_HUB_CACHE",), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface", "hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable], *parts).expanduser()
    return Path.home() / ".cache" / "huggingface" / "hub"


def _weights_of_file(path: Path, name: str) -> Weights:
    return Weights(str(path.parent), gguf=path.name, digest=file_digest(path, name))


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
        digest.update(f"{shard.name}\0{file_digest(shard, name)}".encode())
    return Weights(str(folder), digest=f"sha256 of files:{digest.hexdigest()}")


# Batches of requests: requests that wait at the same time are answered together.

GROW_AFTER = 8
"""Number of consecutive full batches after which a larger batch is tried again."""


class OutOfMemory(Exception):
    """Error for a batch that does not fit into memory."""


@dataclass(eq=False)
class Job:
    """One request in a batch; `wanted` is false once the caller has stopped waiting for the answer."""

    request: Request
    future: asyncio.Future[Response]
    wanted: bool = True


@dataclass
class BatchSize:
    """Number of requests of a batch: those that wait, but not more than fit into memory, if a `limit` was found."""

    limit: int | None = None
    _full: int = field(default=0, repr=False)

    def next_size(self, waiting: int) -> int:
        return waiting if self.limit is None else min(waiting, self.limit)

    def failed(self, size: int) -> None:
        self.limit, self._full = max(1, size // 2), 0

    def succeeded(self, size: int) -> None:
        """Double the limit after `GROW_AFTER` consecutive full batches that fitted into memory."""
        if self.limit is None or size < self.limit:
            return
        self._full += 1
        if self._full >= GROW_AFTER:
            self.limit, self._full = self.limit * 2, 0


Answers = Sequence[Response | FairnessError]
Answerer = Callable[[Sequence[Job]], Answers]
"""Blocking function that returns an answer or an error for each job in order; it raises `OutOfMemory` if the batch is
too large."""


class Batches:
    """Queue of requests, answered in batches; no batch mixes requests for likelihoods with other requests."""

    def __init__(self, answer: Answerer, threads: DaemonThreads, name: str) -> None:
        self._answer, self._threads, self._name = answer, threads, name
        self._waiting: list[Job] = []
        self._sizes: dict[bool, BatchSize] = {False: BatchSize(), True: BatchSize()}
        self._running: asyncio.Task[None] | None = None
        self._asked: list[Job] = []

    async def ask(self, request: Request) -> Response:
        job = Job(request, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        try:
            return await job.future
        finally:
            job.wanted = False

    async def close(self) -> None:
        for job in (*self._waiting, *self._asked):
            job.wanted = False
            job.future.cancel()
        self._waiting.clear()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PAUSE)
            self._waiting = [job for job in self._waiting if job.wanted]
            if not self._waiting:
                return
            await self._answer_batch()

    async def _answer_batch(self) -> None:
        likelihoods = _is_likelihood(self._waiting[0])
        size = self._sizes[likelihoods]
        alike = [job for job in self._waiting if _is_likelihood(job) == likelihoods]
        batch = alike[: size.next_size(len(alike))]
        self._waiting = [job for job in self._waiting if job not in batch]
        self._asked = batch
        try:
            answers: Answers = await self._threads.run(self._answer, batch)
        except OutOfMemory:
            size.failed(len(batch))
            if len(batch) > 1:
                self._waiting = batch + self._waiting
                return
            answers = [
                RequestFailed(
                    f"{self._name}: one request does not fit into memory. Use a shorter prompt, "
                    "a smaller model or another device (environment variable CUDA_VISIBLE_DEVICES)."
                )
            ]
        except Exception as error:  # noqa: BLE001 - otherwise the requests of the batch would wait forever
            message = f"{self._name}: a batch of requests raised {type(error).__name__}: {error}"
            answers = [RequestFailed(message) for _ in batch]
        else:
            size.succeeded(len(batch))
        for job, answer in zip(batch, answers, strict=True):
            if job.future.done():
                continue
            if isinstance(answer, Response):
                job.future.set_result(answer)
            else:
                job.future.set_exception(answer)


def _is_likelihood(job: Job) -> bool:
    return job.request.answer_format == "likelihood"


# SHA-256 of weight files; a file may have gigabytes, so the digest is cached until the file changes.

CACHE_NAME = ".fairness-digests"
"""Name of the file with cached digests. It is beside the weights, or in the user's cache if their folder is
read-only."""
SETTLED = 2.0
"""A digest is cached only if the file's last change is at least this many seconds old: two changes in quick succession
may have the same time stamp."""


def file_digest(file: Path, target: str) -> str:
    """Return the digest of a weight file, as `sha256:…`; raise `TargetError` if it cannot be read."""
    try:
        return f"sha256:{sha256(file)}"
    except OSError as error:
        raise TargetError(
            f"{target}: the file {file} cannot be read: {error.strerror}. Check its path (--fairness-target) and its "
            "permissions."
        ) from error


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hex digits, cached until its size, times or inode change, or raise `OSError`."""
    file = file.absolute()
    places = (file.parent / CACHE_NAME, platformdirs.user_cache_path("pytest-fairness") / CACHE_NAME)
    state = _state(file.stat())
    for place in places:
        known = _cached_digests(place).get(str(file))
        if isinstance(known, dict) and known.get("state") == state and isinstance(known.get("sha256"), str):
            return str(known["sha256"])
    with file.open("rb") as content:
        state = _state(os.fstat(content.fileno()))
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        changed = os.fstat(content.fileno())
    if _state(changed) == state and time.time() - changed.st_mtime > SETTLED:
        for place in places:
            with contextlib.suppress(OSError):
                entry = {"state": state, "sha256": digest}
                replace_file(place, json.dumps({**_cached_digests(place), str(file): entry}, indent=1).encode())
                break
    return digest


def _state(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _cached_digests(place: Path) -> dict[str, Json]:
    try:
        content = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
