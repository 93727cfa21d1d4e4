"""Embedding models loaded with `transformers`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pytest_fairness.errors import FairnessError, RequestFailed
from pytest_fairness.records import Response
from pytest_fairness.targets import embeddings
from pytest_fairness.targets.transformers.loaded_model import LoadedModel, ids_of
from pytest_fairness.targets.transformers.weights import Weights

DEFAULT_TOKENS = 512
"""Maximum number of tokens of a text if the model's configuration has no limit."""


class TextEncoder(LoadedModel):
    """Embedding model; a text's embedding is the mean of its tokens' hidden states, as in sentence-transformers.

    If `1_Pooling/config.json` sets `pooling_mode_cls_token`, the embedding is the hidden state of the first token.
    Texts are cut to the model's maximum number of tokens.
    """

    auto_class: ClassVar[str] = "AutoModel"

    def __init__(self, name: str, weights: Weights, device: str | None) -> None:
        super().__init__(name, weights, device)
        self._takes_first = _pools_first_token(weights)
        context = self._context or DEFAULT_TOKENS
        # RoBERTa reserves two positions.
        context -= 2 if "roberta" in self._model.config.model_type else 0
        self._most = min(context, self._tokenizer.model_max_length)

    def embed(self, texts: Sequence[str]) -> list[Response | FairnessError]:
        """Return the embeddings of several texts, computed in one batch; an error for each unusable embedding.

        Raises:
            OutOfMemory: the batch is too large.
        """
        torch = self._torch
        encoded = [ids_of(self._tokenizer(text, truncation=True, max_length=self._most)) for text in texts]
        width = max(1, *map(len, encoded))
        pad = self._tokenizer.pad_token_id or 0
        tokens = torch.tensor([row + [pad] * (width - len(row)) for row in encoded], device=self.device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in encoded], device=self.device)
        with self._memory_errors(), torch.inference_mode():
            states = self._model(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
            weights = mask.unsqueeze(-1)
            means = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
            rows = (states[:, 0] if self._takes_first else means).tolist()
        found: list[Response | FairnessError] = []
        for row, numbers in zip(encoded, rows, strict=True):
            try:
                found.append(embeddings.response(numbers, tokens=len(row)))
            except ValueError as error:
                found.append(RequestFailed(f"{self._name}: the embedding of a text is not usable: {error}."))
        return found


def _pools_first_token(weights: Weights) -> bool:
    """Return whether the model's configuration selects the first token's hidden state; `False` if it cannot be read."""
    from transformers.utils.hub import cached_file

    try:
        path = cached_file(
            weights.place,
            "1_Pooling/config.json",
            revision=weights.revision,
            _raise_exceptions_for_missing_entries=False,
        )
        settings = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):  # no network, or a file that is not JSON
        return False
    return isinstance(settings, dict) and settings.get("pooling_mode_cls_token") is True
