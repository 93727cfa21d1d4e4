"""Targets `transformers:ID_OR_PATH`: Hugging Face models and GGUF files that this process runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import refuse_tools, versioned
from pytest_fairness.targets.threads import DaemonThreads
from pytest_fairness.targets.transformers import weights
from pytest_fairness.targets.transformers.batching import Batches, Job

if TYPE_CHECKING:
    from pytest_fairness.targets.transformers.language_model import LanguageModel
    from pytest_fairness.targets.transformers.loaded_model import LoadedModel


class TransformersTarget:
    """Hugging Face model or GGUF file that answers in batches and gives likelihoods.

    Requests that wait at the same time are answered in one batch. Every answer has its own seed: the seed of the
    request or, if the request has none, a seed derived from the request's content.

    Args:
        written: the part of the target's name after `transformers:`.
        settings: settings of the run.

    Raises:
        TargetError: the file or folder does not exist, or contains no weights that are safe to load.
    """

    reusable = True
    preflight = False
    concurrency: int | None = None
    likelihoods = True

    def __init__(self, written: str, settings: RunSettings) -> None:
        self._weights = weights.find(written, settings.root)
        self.name = f"transformers:{self._weights.label}"
        state = self._weights.digest or self._weights.revision or "main"
        self.identity = versioned(f"{self.name} {state}", settings.target_version)
        self._device = settings.device
        self._threads = DaemonThreads("fairness-transformers")
        self._model: LoadedModel | None = None
        self._batches: Batches | None = None

    def check(self) -> None:
        """Check the configuration without sending anything; see `Target.check`."""
        packages = ["torch", "transformers", *(["gguf"] if self._weights.gguf else [])]
        for package in packages:
            if find_spec(package) is None:
                raise TargetError(
                    f'{self.name} needs the package {package}: pip install "pytest-fairness[transformers]"'
                )
        if not self._weights.cached and os.environ.get("HF_HUB_OFFLINE", "").casefold() in ("1", "true", "yes", "on"):
            raise TargetError(
                f"{self.name}: the model is not in the cache, and HF_HUB_OFFLINE forbids downloads. Run `hf download "
                f"{self._weights.place}` on a machine with a network, copy the model's files to this machine, and name "
                "their folder: transformers:FOLDER."
            )

    async def open(self) -> None:
        """Prepare the target to answer requests; see `Target.open`."""
        self.check()
        self._model = await self._threads.run(self._load)
        self._batches = Batches(self._answer, self._threads, self.name)

    async def ask(self, request: Request) -> Response:
        """Send one request once and return its response; see `Target.ask`."""
        refuse_tools(self.name, request)
        if request.sampling.extra:
            raise TargetError(f"{self.name} takes no further fields. Remove `sampling.extra` from the probe.")
        if self._batches is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        return await self._batches.ask(request)

    async def close(self) -> None:
        """Cancel the requests in progress, and drop the model from memory; see `Target.close`."""
        if self._batches is not None:
            await self._batches.close()
        self._model = None
        self._threads.close()

    def _load(self) -> LoadedModel:
        from pytest_fairness.targets.transformers.language_model import LanguageModel

        return LanguageModel(self.name, self._weights, self._device)

    def _answer(self, batch: Sequence[Job]) -> Sequence[Response | FairnessError]:
        model = cast("LanguageModel", self._model)  # requests are batched only after the model is loaded
        requests = [job.request for job in batch]
        if requests[0].answer_format == "likelihood":
            return model.score(requests)
        return model.generate(requests, lambda row: batch[row].wanted)


def open_transformers(rest: str | None, settings: RunSettings) -> TransformersTarget:
    """Return the target `transformers:ID_OR_PATH`; a relative path starts at pytest's rootdir.

    Raises:
        TargetError: no model is named, the file or folder does not exist, or it contains no weights that are safe to
            load.
    """
    if not rest:
        raise TargetError("'transformers' names no model; write transformers:ID_OR_PATH (--fairness-target).")
    return TransformersTarget(rest, settings)
