"""Server that runs a GGUF model in this process with xllamacpp, on a loopback port."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_fairness.errors import TargetError

SLOTS = 8
"""Number of requests that the model answers at the same time."""
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
    """Import and return xllamacpp.

    Raises:
        TargetError: xllamacpp is not installed, or lacks a library of the system.
    """
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
    """Loaded model, and a server for it that is compatible with OpenAI's chat completions.

    Args:
        name: the target's name, for messages.
        model: path of a GGUF file.

    Attributes:
        url: address of the server, up to the port.

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
