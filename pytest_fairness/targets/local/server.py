"""The embedded model, served in this process on a loopback port by xllamacpp."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_fairness.closing import Closing
from pytest_fairness.errors import TargetError

SLOTS = 8
"""Requests that the model works on at once."""
CONTEXT = 2048
"""Tokens of prompt and answer together, for each slot."""
QUIET = -1
"""Verbosity at which the runner writes nothing; anything more fills the screen."""


def check_runner(name: str) -> None:
    """Find whether the runner is installed, without importing it.

    Raises:
        TargetError: it is not.
    """
    if find_spec("xllamacpp") is None:
        raise TargetError(f"{name} needs the package xllamacpp: pip install 'pytest-fairness[local]'")


class LocalServer:
    """A loaded model; its address speaks OpenAI's chat completions.

    Args:
        name: the target, for messages.
        model: a GGUF file.

    Attributes:
        url: up to the port.

    Raises:
        TargetError: the runner is not installed, or the file is no model that it can load.
    """

    def __init__(self, name: str, model: Path) -> None:
        check_runner(name)
        # Its threads wait for each other by spinning, which starves them as soon as anything else wants a core, as
        # measuring does: down to a tenth of the speed. Asleep while they wait, they lose less. Read once, on loading.
        if "OMP_WAIT_POLICY" not in os.environ:
            os.environ.setdefault("GOMP_SPINCOUNT", "0")
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.verbosity = QUIET
        parameters.model.path = str(model)
        parameters.n_parallel = SLOTS
        parameters.n_ctx = CONTEXT * SLOTS
        parameters.cpuparams.n_threads = _cores()
        try:
            self._server: Any = xllamacpp.Server(parameters)
        except Exception as error:
            raise TargetError(f"{name}: xllamacpp cannot load {model}; is it a GGUF model?") from error
        self.url = str(self._server.listening_address)

    def close(self) -> None:
        """Unload the model; requests in progress are dropped."""
        self._server = None


class ServedModel(Closing):
    """A model that other processes of the run reach by an address, loaded when the first of them comes for it.

    Args:
        load: makes the server.

    Attributes:
        address: `host:port` of a door at which the model's own address is told.
    """

    def __init__(self, load: Callable[[], LocalServer]) -> None:
        self._load = load
        self._server: LocalServer | None = None
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._door.getsockname())
        self._thread = threading.Thread(target=self._keep_door, name="fairness-door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let nobody in any more, and unload the model."""
        # Closing alone would leave a thread that waits in `accept` waiting.
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._thread.join(5)
        if self._server is not None:
            self._server.close()
            self._server = None

    def _keep_door(self) -> None:
        while True:
            try:
                visitor, _ = self._door.accept()
            except OSError:
                return
            with visitor:
                visitor.sendall(json.dumps(self._tell()).encode())

    def _tell(self) -> dict[str, str]:
        try:
            self._server = self._server or self._load()
        except TargetError as error:
            return {"error": str(error)}
        return {"url": self._server.url}


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
