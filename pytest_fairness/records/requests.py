"""Requests, and the responses of targets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

AnswerFormat = Literal["text", "list", "titles", "json", "likelihood", "embedding"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters of a request; a parameter that is `None` is not sent."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None

    def to_json(self) -> dict[str, float | int]:
        """Return the parameters that are set, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a target: the unit of sending, paying and recording. Equal requests are sent once.

    Attributes:
        prompt: user message; of a likelihood, the text before `continuation`; of an embedding, the text.
        system: system prompt.
        sampling: sampling parameters; the seed is the request's own, see `with_own_seed`.
        trial: number of the draw, from 0.
        answer_format: `likelihood` asks for the log-probabilities of the tokens of `continuation`, `embedding` for the
            vector of `prompt`; all others ask for text.
        continuation: text whose likelihood is asked for.
    """

    prompt: str
    system: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    trial: int = 0
    answer_format: AnswerFormat = "text"
    continuation: str | None = None

    def with_own_seed(self) -> Self:
        """Return the request with a seed derived from the probe's seed, if it has one, and from the request's texts.

        With the same seed, a server would draw the answers to two prompts with the same random numbers, but every test
        of a difference assumes that they are independent.
        """
        if self.sampling.seed is None:
            return self
        return replace(self, sampling=replace(self.sampling, seed=self._derived_seed(self.sampling.seed)))

    @property
    def seed(self) -> int:
        """Return a seed from 0 to 2**31 - 1 for targets that need one; reproducible, different for each request."""
        return self._derived_seed(0) if self.sampling.seed is None else self.sampling.seed

    def _derived_seed(self, seed: int) -> int:
        asked = "\0".join([str(seed), str(self.trial), self.system or "", self.prompt, self.continuation or ""])
        digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:4], "big") >> 1


TOO_LONG = "too_long"
"""Finish reason of a response longer than `fairness_max_answer_bytes`; its text is not kept."""


@dataclass(frozen=True, slots=True)
class Response:
    """Recorded response to one request.

    Attributes:
        text: text of the target, possibly empty. Of a likelihood, JSON: `tokens`, the pieces of the continuation, and
            `log_probabilities`, a natural logarithm for each (`null` if not given). Of an embedding, JSON:
            `dimensions`, and `float32`, the vector as little-endian 32-bit numbers in base64.
        finish_reason: `stop`, `length` (cut off by `max_tokens`), `refusal` or `content_filter`, if the target reports
            it; or `TOO_LONG`.
        prompt_tokens, completion_tokens: as the target counts them; `None` if it does not report them.
        created: arrival, in seconds since the epoch.
        model, fingerprint: `model` and `system_fingerprint` as the server reports them; `None` if it does not.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    created: float = 0.0
    model: str | None = None
    fingerprint: str | None = None

    @property
    def served(self) -> str | None:
        """Return the model that answered, as reports show it: `gpt-x-2026-05 (fp_44709d)`; `None` if not reported."""
        if self.fingerprint is None:
            return self.model
        return f"{self.model or 'a model'} ({self.fingerprint})"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Request together with its place in the probe.

    Attributes:
        request: the request.
        labels: names and values of the cell: the values of the axes, and `prompt` (its number, from `"1"`) if the probe
            has several prompts.
        trial: number of the draw within the cell, from 0.
        choices: the words that may be answered, if they are few.
    """

    request: Request
    labels: Mapping[str, str]
    trial: int
    choices: tuple[str, ...] = ()
