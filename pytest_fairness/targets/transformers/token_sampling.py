"""Sampling of tokens; each request has its own random numbers, which do not depend on the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_fairness.records import Request


@dataclass(frozen=True)
class Defaults:
    """Default sampling parameters from the model's generation settings, used where the probe sets none.

    The `top_k` most probable tokens may be sampled; 0 allows all tokens.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


class TokenSampler:
    """Logits processor that samples the next token of each row; a row is one request.

    Each row has its own temperature, `top_p` and random generator.

    The largest log-probability after adding Gumbel noise is a sample from the distribution (Gumbel 1954; Maddison et
    al. 2014), so greedy decoding of the noisy scores is equivalent to sampling. The noise of a row depends only on its
    request and seed. The other rows of the batch may change the last bits of the log-probabilities; this changes the
    sampled token only if two noisy scores are almost equal.

    Args:
        requests: the requests, one for each row of the batch.
        defaults: values of parameters that a request does not set.
        torch: the imported module.
        device: device of the scores.
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
        """Return scores of shape (rows, vocabulary) in which the sampled token has the largest score of its row."""
        scores = scores.float().clone()
        for row, (temperature, top_p, top_k, generator) in enumerate(self._rows):
            if temperature > 0:
                scores[row] = self._noisy_scores(scores[row] / temperature, top_p, top_k, generator)
        return scores

    def _noisy_scores(self, scores: Any, top_p: float, top_k: int, generator: Any) -> Any:
        torch = self._torch
        if 0 < top_k < len(scores):
            scores = scores.masked_fill(scores < scores.topk(top_k).values[-1], -math.inf)
        if top_p < 1:
            ordered, places = scores.softmax(-1).sort(descending=True, stable=True)
            # A token is kept if the likelier tokens together have less than `top_p`; the likeliest is always kept.
            outside = ordered.cumsum(-1) - ordered >= top_p
            outside[0] = False
            scores = scores.masked_fill(torch.zeros_like(outside).scatter(0, places, outside), -math.inf)
        noise = torch.empty_like(scores).exponential_(generator=generator)
        return scores - noise.clamp_min(1e-30).log()


class Ending:
    """Stopping criterion that ends a row when its limit of tokens is reached, or no caller waits for its answer.

    Args:
        width: number of tokens of the (padded) prompts.
        limits: maximum number of answer tokens of each row.
        wanted: function that returns whether a caller still waits for the answer of a row.
        torch: the imported module.
    """

    def __init__(self, width: int, limits: Sequence[int], wanted: Callable[[int], bool], torch: Any) -> None:
        self._width, self._limits, self._wanted, self._torch = width, limits, wanted, torch

    def __call__(self, tokens: Any, _scores: Any, **_more: Any) -> Any:
        """Return whether each row is complete, as a tensor of shape (rows,)."""
        written = tokens.shape[1] - self._width
        done = [written >= limit or not self._wanted(row) for row, limit in enumerate(self._limits)]
        return self._torch.tensor(done, device=tokens.device)
