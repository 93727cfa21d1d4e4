"""Drawing of tokens row by row: each question has its own randomness, whatever it shares a batch with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_fairness.records import Request


@dataclass(frozen=True)
class Defaults:
    """What a model's own generation settings say where a probe's `sampling` is silent."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


class Drawing:
    """Draws each row's next token with the row's own temperature, `top_p` and random generator.

    The largest of the log-probabilities, each with Gumbel noise added to it, is a draw from the distribution
    (Gumbel 1954; Maddison et al. 2014). So the noise is added here, and whoever takes the largest has drawn. Noise of
    a row depends on nothing but its question and seed; rounding of the log-probabilities, which the batch may change in
    the last bits, changes a draw only where two tokens come out all but equal.

    Args:
        requests: one a row.
        defaults: for what they do not set.
        torch: the module.
        device: where the scores are.
    """

    def __init__(self, requests: Sequence[Request], defaults: Defaults, torch: Any, device: Any) -> None:
        self._torch = torch
        self._rows = []
        for request in requests:
            sampling = request.sampling
            temperature = defaults.temperature if sampling.temperature is None else sampling.temperature
            top_p = defaults.top_p if sampling.top_p is None else sampling.top_p
            generator = torch.Generator(device=device)
            generator.manual_seed(request.seed)
            self._rows.append((temperature, top_p, defaults.top_k, generator))

    def __call__(self, _tokens: Any, scores: Any) -> Any:
        """Scores of shape (rows, vocabulary), with the drawn token's the largest of its row."""
        scores = scores.float().clone()
        for row, (temperature, top_p, top_k, generator) in enumerate(self._rows):
            if temperature > 0:
                scores[row] = self._drawn(scores[row] / temperature, top_p, top_k, generator)
        return scores

    def _drawn(self, scores: Any, top_p: float, top_k: int, generator: Any) -> Any:
        torch = self._torch
        if 0 < top_k < len(scores):
            scores = scores.masked_fill(scores < scores.topk(top_k).values[-1], -math.inf)
        if top_p < 1:
            ordered, places = scores.softmax(-1).sort(descending=True, stable=True)
            # A token stays if those likelier than it make up less than `top_p`; the likeliest always does.
            outside = ordered.cumsum(-1) - ordered >= top_p
            outside[0] = False
            scores = scores.masked_fill(torch.zeros_like(outside).scatter(0, places, outside), -math.inf)
        noise = torch.empty_like(scores).exponential_(generator=generator)
        return scores - noise.clamp_min(1e-30).log()


class Ending:
    """Ends each row at its own number of tokens, and those that nobody waits for any more at once.

    Args:
        width: tokens before the answers.
        limits: of each row, how many tokens it may have.
        wanted: of each row, whether it is still waited for.
        torch: the module.
    """

    def __init__(self, width: int, limits: Sequence[int], wanted: Callable[[int], bool], torch: Any) -> None:
        self._width, self._limits, self._wanted, self._torch = width, limits, wanted, torch

    def __call__(self, tokens: Any, _scores: Any, **_more: Any) -> Any:
        """(rows,) whether the row is done."""
        written = tokens.shape[1] - self._width
        done = [written >= limit or not self._wanted(row) for row, limit in enumerate(self._limits)]
        return self._torch.tensor(done, device=tokens.device)
