"""A GGUF model run by this very machine: the embedded default, or any other file."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets.base import versioned
from pytest_fairness.targets.local import json_grammar, model_file
from pytest_fairness.targets.local.server import SLOTS, LocalServer, check_runner
from pytest_fairness.targets.threads import DaemonThreads
from pytest_fairness.targets.transformers.fingerprint import fingerprint

if TYPE_CHECKING:
    from pytest_fairness.targets.openai.chat import Chat


class LocalTarget:
    """A model of this machine, in this process or served by another one of the same run.

    Every request is sent with a seed, so that runs repeat: the probe's, or else the number of the trial.

    Args:
        model: a GGUF file, or `None` for the embedded model, which is fetched when first needed.
        settings: the run's.
        address: `ServedModel.address`, where another process runs the model.

    Raises:
        TargetError: the file is not there.
    """

    reusable = True
    concurrency: int | None = SLOTS

    def __init__(self, model: Path | None, settings: RunSettings, address: str | None = None) -> None:
        if model is None:
            self.name = "local"
            identity = f"local:{model_file.FILE_NAME} sha256:{model_file.SHA256}"
        else:
            self.name = f"local:{model.name}"
            identity = f"{self.name} {fingerprint(model, self.name)}"
        self.identity = versioned(identity, settings.target_version)
        self._model = model
        self._address = address
        self._timeout = settings.timeout
        self._max_bytes = settings.max_answer_bytes
        self._threads = DaemonThreads("fairness-local")
        self._server: LocalServer | None = None
        self._chat: Chat | None = None

    def check(self) -> None:
        """See `Target`."""
        check_runner(self.name)

    def load(self, console: TextIO | None = None) -> LocalServer:
        """Load the model into this process, and fetch it before if need be.

        Args:
            console: where the progress of fetching is drawn, if it is a terminal; default standard error.

        Raises:
            TargetError: it cannot be fetched or loaded.
        """
        check_runner(self.name)
        return LocalServer(self.name, self._model or model_file.embedded_model(console))

    async def open(self) -> None:
        """See `Target`."""
        from pytest_fairness.targets.openai.chat import Chat

        if self._address is None:
            self._server = await self._threads.run(self.load)
            url = self._server.url
        else:
            url = await self._ask_at(self._address)
        self._chat = Chat(
            self.name,
            self.name,
            base_url=f"{url}/v1",
            key=None,
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            where="--fairness-target",
            trust_environment=False,
        )

    async def ask(self, request: Request) -> Response:
        """See `Target`."""
        if self._chat is None:
            raise RuntimeError("a target is opened before it is asked")
        more: dict[str, Json] = {}
        if request.sampling.seed is None:
            more["seed"] = request.seed
        if request.answer_format == "json":
            more["grammar"] = json_grammar.grammar(request)
        response = await self._chat.ask(request, more, json_format=request.answer_format != "json")
        # The file says which model it is; the runner repeats the name that it was sent.
        response = replace(response, model=None, fingerprint=None)
        return json_grammar.folded(response) if request.answer_format == "json" else response

    async def close(self) -> None:
        """See `Target`."""
        if self._chat is not None:
            await self._chat.close()
        if self._server is not None:
            self._server.close()
        self._threads.close()

    async def _ask_at(self, address: str) -> str:
        host, _, port = address.rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            told = json.loads(await reader.read())
            writer.close()
        except (OSError, ValueError) as error:
            raise TargetError(
                f"{self.name}: the process that serves the model is gone (xdist's controller)."
            ) from error
        if "error" in told:
            raise TargetError(str(told["error"]))
        return str(told["url"])


def open_local(rest: str | None, settings: RunSettings, address: str | None) -> LocalTarget:
    """`local` or `local:PATH.gguf`; a relative path starts at pytest's rootdir.

    Raises:
        TargetError: the file is not there.
    """
    return LocalTarget(None if rest is None else settings.root / Path(rest).expanduser(), settings, address)
