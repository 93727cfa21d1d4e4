"""Text-classification models that score answers, loaded with `transformers` from a folder or the Hugging Face cache.

For safety, Python code of a model is never run, and no pickle is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import ModelError

if TYPE_CHECKING:
    import torch


REGARD_LABELS = ("negative", "neutral", "positive", "other")
"""Labels, in order, of a model whose files do not name its four labels: the labels of models of regard.

Regard is how positively a group is described.
"""
MAX_TOKENS = 512
BATCH = 32
DIGITS = 6
"""Number of decimals of scores; further decimals depend on the other texts in the batch."""

_UNNAMED = re.compile(r"label_\d+")
_READ = ("*.json", "*.txt", "*.model", "*.safetensors", "*.safetensors.index.json")
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", re.ASCII)


class Classifier:
    """Text-classification model, which is loaded when it first scores a text.

    Args:
        name: an id of the Hugging Face Hub, or a folder inside of `folder`.
    """

    cached = True

    def __init__(
        self, name: str, folder: Path, *, place: str = "the probe's folder", setting: str = "`model:`"
    ) -> None:
        self.name, self._place, self._setting = name, place, setting
        self._given = folder / name
        self._folder = folder

    @cached_property
    def identity(self) -> str:
        """Return the model's name and revision; for a folder, the folder's name and a digest of its files."""
        if self._given.is_dir():
            digest = sha256()
            for path in sorted(
                path for path in self.path.iterdir() if path.suffix in (".json", ".txt", ".safetensors")
            ):
                with path.open("rb") as file:
                    digest.update(path.name.encode() + b"\0" + file_digest(file, "sha256").digest() + b"\0")
            return f"{self._given.name}@sha256:{digest.hexdigest()[:16]}"
        return f"{self.name}@{self.path.name}"

    @cached_property
    def path(self) -> Path:
        path = self._given
        if path.is_dir():
            self._require_inside()
        elif _HUB_ID.fullmatch(self.name):
            path = _fetched(self.name, self._place, self._setting)
        else:
            raise ModelError(
                f"{self._place} has no folder {self.name!r} with a model. Set {self._setting} to a folder inside of "
                f"{self._place}, or to an id of the Hugging Face Hub"
            )
        if (path / "config.json").exists() and not any(path.glob("*.safetensors")):
            raise ModelError(
                f"{self.name} has no weights in the format safetensors, and other formats are not loaded. Save a copy "
                f"of the model with `save_pretrained` of transformers in {self._place}, and name it in {self._setting}."
            )
        return path

    def _require_inside(self) -> None:
        """Raise `ModelError` if the model is outside of the probe's folder, because probe files may be untrusted.

        For a model in the ini file, the folder is pytest's rootdir.
        """
        root = self._folder.resolve()
        if Path(self.name).is_absolute() or ".." in Path(self.name).parts:
            raise ModelError(
                f"{self.name}: the model must be inside of {self._place}; move it there, and set "
                f"{self._setting} to its path in this folder"
            )
        for path in (self._given, *self._given.iterdir()):
            if not path.resolve().is_relative_to(root):
                shown = path.relative_to(self._folder).as_posix()
                raise ModelError(f"{self.name}: {shown} is a link that leads out of {self._place}; copy the files")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the labels in the model's order, in lower case; download the model from the Hub if necessary."""
        missing = [package for package in ("torch", "transformers") if find_spec(package) is None]
        if missing:
            raise ModelError(
                f"scoring answers with {self.name} needs {' and '.join(missing)}: "
                'pip install "pytest-fairness[transformers]"'
            )
        config = self._config
        id2label = config.get("id2label")
        names = id2label if isinstance(id2label, Mapping) else {}
        labels = tuple(str(names[key]).casefold() for key in sorted(names, key=int))
        if not labels or all(map(_UNNAMED.fullmatch, labels)):
            if len(labels) == len(REGARD_LABELS):
                return REGARD_LABELS
            raise ModelError(
                f"{self.name}: the model's labels have no names. Write the names as `id2label` into its config.json, "
                '{"0": "negative", …}'
            )
        return labels

    def scores(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Return the probability of each label for each text; at most the first 512 tokens of a text count."""
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        scores: dict[int, dict[str, float]] = {}
        for start in range(0, len(by_length), BATCH):
            batch = by_length[start : start + BATCH]
            for index, row in zip(batch, self._probabilities([texts[index] for index in batch]), strict=True):
                scores[index] = {label: round(number, DIGITS) for label, number in zip(self.labels, row, strict=True)}
        return [scores[index] for index in range(len(texts))]

    def _probabilities(self, texts: list[str]) -> Iterator[list[float]]:
        import torch

        tokenizer, model, device = self._loaded
        # The smallest of three limits; a tokenizer without a limit reports a huge number.
        longest = min(MAX_TOKENS, tokenizer.model_max_length, self._position_limit)
        batch = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt").to(device)
        with torch.inference_mode():
            logits = model(**batch).logits.float()
        several = self._config.get("problem_type") == "multi_label_classification"
        yield from (logits.sigmoid() if several else logits.softmax(dim=-1)).tolist()

    @cached_property
    def _config(self) -> Mapping[str, Any]:
        try:
            config = json.loads((self.path / "config.json").read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ModelError(
                f"{self.name}: config.json cannot be read ({error}). Save the model again with `save_pretrained`"
            ) from error
        if not isinstance(config, Mapping):
            raise ModelError(
                f"{self.name}: config.json holds no JSON object. Save the model again with `save_pretrained`"
            )
        return config

    @property
    def _position_limit(self) -> int:
        # RoBERTa reserves two positions.
        positions = self._config.get("max_position_embeddings")
        return positions - 2 if isinstance(positions, int) and positions > 2 else MAX_TOKENS

    @cached_property
    def _loaded(self) -> tuple[Any, Any, torch.device]:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            tokenizer = AutoTokenizer.from_pretrained(self.path, local_files_only=True, trust_remote_code=False)
            model = AutoModelForSequenceClassification.from_pretrained(
                self.path,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
        except Exception as error:  # many types, depending on what is wrong with the files
            reason = _first_line(error)
            raise ModelError(f"{self.name} cannot be loaded as a text-classification model: {reason}") from error
        return tokenizer, model.to(device).eval(), device


def _fetched(name: str, place: str, setting: str) -> Path:
    """Return the cached folder of a model of the Hugging Face Hub; download the model if it is missing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(snapshot_download(name, allow_patterns=list(_READ)))
    except (OSError, HfHubHTTPError, HFValidationError) as error:
        raise ModelError(
            f"the model {name} is neither a folder nor in the Hugging Face cache, and cannot be downloaded "
            f"({_first_line(error)}). Run `hf download {name}` on a machine with a network, copy the model's files "
            f"into a folder in {place}, and name this folder in {setting}."
        ) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
