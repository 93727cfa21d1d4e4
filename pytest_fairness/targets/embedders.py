"""Embedding models that probes can name: `openai:MODEL` and `transformers:ID_OR_PATH`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.openai.target import OpenAITarget
from pytest_fairness.targets.transformers.batching import PAUSE, Job
from pytest_fairness.targets.transformers.target import TransformersTarget

if TYPE_CHECKING:
    from pytest_fairness.targets.transformers.text_encoder import TextEncoder

BATCH = 64
"""Maximum number of texts in one HTTP request."""

Outcomes = list[Response | FairnessError]


def open_embedder(spec: str, settings: RunSettings, folder: Path) -> Target:
    """Return the embedding model that a probe names; send nothing, load nothing and need no key yet.

    Args:
        spec: `openai:MODEL` or `transformers:ID_OR_PATH`.
        settings: settings of the run; `embeddings_base_url`, `base_url`, `api_headers`, `timeout`, `max_answer_bytes`
            and `device` are used.
        folder: folder of the probe, to which the paths of models are relative.

    Raises:
        TargetError: the model's path leads out of the folder or to no model, or an address or header is not valid.
    """
    prefix, _, rest = spec.strip().partition(":")
    # `fairness_target_version` is the version of the audited system, not of the embedding model.
    base_url = settings.embeddings_base_url or settings.base_url
    settings = replace(settings, base_url=base_url, target_version=None, root=folder)
    try:
        if prefix == "openai":
            return OpenAIEmbedder(rest, settings)
        _require_inside(rest, folder)
        return TransformersEmbedder(rest, settings)
    except TargetError as error:
        raise TargetError(str(error).replace("--fairness-target", "`embeddings` in the probe file")) from error


def _require_inside(written: str, folder: Path) -> None:
    """Raise `TargetError` for a model outside of the probe's folder, because probe files may be untrusted."""
    path = Path(written)
    leads_out = path.is_absolute() or written.startswith("~") or ".." in path.parts
    if leads_out or not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise TargetError(
            f"transformers:{written}: the model must be inside of the probe's folder. Move it there, and write its "
            "path relative to this folder (`embeddings` in the probe file)."
        )


class OpenAIEmbedder(OpenAITarget):
    """Embedding model of OpenAI or of a compatible server; texts that wait at the same time share one request."""

    likelihoods = False
    lasting = True
    setting = "`embeddings` in the probe file"
    serves = "an embeddings endpoint"

    def __init__(self, model: str, settings: RunSettings) -> None:
        super().__init__(model, settings)
        self._next: tuple[asyncio.Task[Outcomes], list[str]] | None = None
        self._running: set[asyncio.Task[Outcomes]] = set()

    async def ask(self, request: Request) -> Response:
        """Return the embedding of the prompt; see `Target.ask`."""
        if self._next is None or len(self._next[1]) >= BATCH:
            texts: list[str] = []
            task = asyncio.create_task(self._embeddings_after_pause(texts))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            self._next = task, texts
        task, texts = self._next
        texts.append(request.prompt)
        place = len(texts) - 1
        # Cancelling one text must not cancel the others.
        outcome = (await asyncio.shield(task))[place]
        if isinstance(outcome, FairnessError):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Cancel the requests in progress, and close the connections; see `Target.close`."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        await super().close()

    async def _embeddings_after_pause(self, texts: list[str]) -> Outcomes:
        await asyncio.sleep(PAUSE)  # further texts join the request meanwhile
        if self._next is not None and self._next[1] is texts:
            self._next = None
        try:
            return await self._opened().embeddings(texts)
        except RequestFailed as error:
            if len(texts) == 1 or error.retry is not None:
                raise
        # One of the texts may be too long; the others are not affected.
        return [await self._embedding_of(text) for text in texts]

    async def _embedding_of(self, text: str) -> Response | FairnessError:
        try:
            return (await self._opened().embeddings([text]))[0]
        except RequestFailed as error:
            return error


class TransformersEmbedder(TransformersTarget):
    """Hugging Face model that embeds texts in batches."""

    likelihoods = False
    lasting = True

    def check(self) -> None:
        """Check the configuration without sending anything; see `Target.check`."""
        if self._weights.gguf:
            raise TargetError(
                f"{self.name}: embeddings cannot be computed with a GGUF file. Set `embeddings` in the probe file to "
                "transformers:FOLDER, with the folder of a Hugging Face model."
            )
        super().check()

    def _load(self) -> TextEncoder:
        from pytest_fairness.targets.transformers.text_encoder import TextEncoder

        return TextEncoder(self.name, self._weights, self._device)

    def _answer(self, batch: Sequence[Job]) -> Sequence[Response | FairnessError]:
        encoder = cast("TextEncoder", self._model)  # requests are batched only after the model is loaded
        return encoder.embed([job.request.prompt for job in batch])
