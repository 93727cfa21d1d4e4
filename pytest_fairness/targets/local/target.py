"""Targets `local` (the embedded model) and `local:PATH.gguf`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets.base import refuse_tools, versioned
from pytest_fairness.targets.local import json_grammar, model_file
from pytest_fairness.targets.local.server import SLOTS, LocalServer, check_runner, load_runner
from pytest_fairness.targets.threads import DaemonThreads
from pytest_fairness.targets.transformers.file_digest import digest
from pytest_fairness.targets.web.endpoint import Endpoint

if TYPE_CHECKING:
    from pytest_fairness.targets.openai.chat import Chat


class LocalTarget:
    """GGUF model that this process runs.

    Every request is sent with a seed, so that answers are reproducible. The seed is the request's own or, if the
    request has none, is derived from the request's content.

    Args:
        model: a GGUF file, or `None` for the embedded model, which is downloaded when first needed.
        settings: settings of the run.

    Raises:
        TargetError: the file cannot be read.
    """

    reusable = True
    preflight = False
    concurrency: int | None = SLOTS

    def __init__(self, model: Path | None, settings: RunSettings) -> None:
        if model is None:
            self.name = "local"
            identity = f"local:{model_file.FILE_NAME} sha256:{model_file.SHA256}"
        else:
            self.name = f"local:{model.name}"
            identity = f"{self.name} {digest(model, self.name)}"
        self.identity = versioned(identity, settings.target_version)
        self._model = model
        self._timeout = settings.timeout
        self._max_bytes = settings.max_answer_bytes
        self._threads = DaemonThreads("fairness-local")
        self._server: LocalServer | None = None
        self._chat: Chat | None = None

    def check(self) -> None:
        """Check the configuration without sending anything; see `Target.check`."""
        check_runner(self.name)

    async def open(self) -> None:
        """Prepare the target to answer requests; see `Target.open`."""
        from pytest_fairness.targets.openai.chat import Chat

        self._server = await self._threads.run(self._load)
        endpoint = Endpoint(
            name=self.name,
            model=self.name,
            base_url=f"{self._server.url}/v1",
            key="",
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            where="--fairness-target",
            trust_environment=False,
        )
        self._chat = Chat(endpoint)

    async def ask(self, request: Request) -> Response:
        """Send one request once and return its response; see `Target.ask`."""
        refuse_tools(self.name, request)
        if self._chat is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        more: dict[str, Json] = {}
        if request.sampling.seed is None:
            more["seed"] = request.seed
        if request.answer_format == "json":
            more["grammar"] = json_grammar.grammar(request)
        response = await self._chat.ask(request, more, json_format=request.answer_format != "json")
        # xllamacpp repeats the model name of the request; the identity names the file.
        response = replace(response, model=None, fingerprint=None)
        return json_grammar.as_map(response) if request.answer_format == "json" else response

    async def close(self) -> None:
        """Close the connections, and unload the model; see `Target.close`."""
        if self._chat is not None:
            await self._chat.close()
        if self._server is not None:
            self._server.close()
        self._threads.close()

    def _load(self) -> LocalServer:
        load_runner(self.name)  # before the model is downloaded
        return LocalServer(self.name, self._model or model_file.embedded_model())


def open_local(rest: str | None, settings: RunSettings) -> LocalTarget:
    """Return the target `local` or `local:PATH.gguf`; a relative path starts at pytest's rootdir.

    Raises:
        TargetError: the file cannot be read.
    """
    return LocalTarget(None if rest is None else settings.root / Path(rest).expanduser(), settings)
