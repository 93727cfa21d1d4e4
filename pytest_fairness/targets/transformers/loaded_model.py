"""Models and tokenizers loaded with `transformers`.

Only this module and `token_sampling.py` use torch, which is imported when a model is loaded.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from pytest_fairness.errors import TargetError
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.transformers.batching import OutOfMemory
from pytest_fairness.targets.transformers.weights import Weights


class LoadedModel:
    """Model and its tokenizer, in memory.

    Args:
        name: the target's name, for messages.
        weights: path or id of the model.
        device: name of a torch device, or `None` for the fastest one.

    Class attributes:
        auto_class: name of the class that loads the model, in the package `transformers`.

    Raises:
        TargetError: torch cannot use the device; or the model is missing, cannot be downloaded or loaded with this
            class, does not fit into memory, or has no fast tokenizer.
    """

    auto_class: ClassVar[str]

    def __init__(self, name: str, weights: Weights, device: str | None) -> None:
        self._name = name
        # As in `local/server.py`: OpenMP threads that wait by spinning are slow on shared cores.
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
                f"cuda:1 or mps (ini fairness_device)."
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
                "another device (ini fairness_device)."
            ) from error
        except Exception as error:
            raise TargetError(self._load_error_text(weights, error)) from error
        if not tokenizer.is_fast:
            raise TargetError(
                f"{self._name}: the model has no fast tokenizer (tokenizer.json). Use a model that has one."
            )
        return tokenizer, model

    def _number_type(self, weights: Weights) -> Any:
        """Return the number type of the weights.

        The type is float32 on a CPU. On other devices, the type is bfloat16 for GGUF files, and the stored type for
        other models.
        """
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
    """Return the token ids of an encoded text."""
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
