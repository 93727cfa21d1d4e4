"""Targets `transformers:ID_OR_PATH`: language models and text encoders that this process runs."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, cast

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Message, Request, Response
from pytest_fairness.targets import base, transformers_models
from pytest_fairness.targets.base import DaemonThreads, refuse_tools, versioned
from pytest_fairness.targets.transformers_models import Batches, Job, LoadedModel, Weights, ids_of

# Targets `transformers:ID_OR_PATH`: Hugging Face models and GGUF files that this process runs.


class TransformersTarget:
    """Hugging Face model or GGUF file that answers in batches and gives likelihoods.

    Requests that wait at the same time are answered in one batch. Every answer has its own seed: the seed of the
    request or, if the request has none, a seed derived from the request's content.

    Raises:
        TargetError: the file or folder does not exist, or contains no weights that are safe to load.
    """

    reusable = True
    preflight = False
    concurrency: int | None = None
    likelihoods = True

    def __init__(self, written: str, settings: RunSettings) -> None:
        self._weights = transformers_models.find_weights(written, settings.root)
        self.name = f"transformers:{self._weights.label}"
        state = self._weights.digest or self._weights.revision or "main"
        self.identity = versioned(f"{self.name} {state}", settings.target_version)
        self._device = settings.device
        self._threads = DaemonThreads("fairness-transformers")
        self._model: LoadedModel | None = None
        self._batches: Batches | None = None

    def check(self) -> None:
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
        self.check()
        self._model = await self._threads.run(self._load)
        self._batches = Batches(self._answer, self._threads, self.name)

    async def ask(self, request: Request) -> Response:
        refuse_tools(self.name, request)
        if request.sampling.extra:
            raise TargetError(f"{self.name} takes no further fields. Remove `sampling.extra` from the probe.")
        if self._batches is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        return await self._batches.ask(request)

    async def close(self) -> None:
        """Cancel the requests in progress, and drop the model from memory."""
        if self._batches is not None:
            await self._batches.close()
        self._model = None
        self._threads.close()

    def _load(self) -> LoadedModel:

        return LanguageModel(self.name, self._weights, self._device)

    def _answer(self, batch: Sequence[Job]) -> Sequence[Response | FairnessError]:
        model = cast("LanguageModel", self._model)  # requests are batched only after the model is loaded
        requests = [job.request for job in batch]
        if requests[0].answer_format == "likelihood":
            return model.score(requests)
        return model.generate(requests, lambda row: batch[row].wanted)


def open_transformers(rest: str | None, settings: RunSettings) -> TransformersTarget:
    """Return the target `transformers:ID_OR_PATH`; a relative path starts at pytest's rootdir."""
    if not rest:
        raise TargetError("'transformers' names no model; write transformers:ID_OR_PATH (--fairness-target).")
    return TransformersTarget(rest, settings)


class TransformersEmbedder(TransformersTarget):
    """Hugging Face model that embeds texts in batches."""

    likelihoods = False
    lasting = True

    def check(self) -> None:
        if self._weights.gguf:
            raise TargetError(
                f"{self.name}: embeddings cannot be computed with a GGUF file. Set `embeddings` in the probe file to "
                "transformers:FOLDER, with the folder of a Hugging Face model."
            )
        super().check()

    def _load(self) -> TextEncoder:

        return TextEncoder(self.name, self._weights, self._device)

    def _answer(self, batch: Sequence[Job]) -> Sequence[Response | FairnessError]:
        encoder = cast("TextEncoder", self._model)  # requests are batched only after the model is loaded
        return encoder.embed([job.request.prompt for job in batch])


# Causal language models loaded with `transformers`, which continue prompts and score texts in batches.

MAX_TOKENS = 2048
"""Maximum number of tokens of an answer if the probe sets no `max_tokens`."""
DECIMALS = 5
"""Number of decimals of recorded log-probabilities; further decimals depend on the other requests in the batch."""


class LanguageModel(LoadedModel):
    """Causal language model, which continues prompts and gives the likelihood of texts."""

    auto_class: ClassVar[str] = "AutoModelForCausalLM"

    def __init__(self, name: str, weights: Weights, device: str | None) -> None:
        super().__init__(name, weights, device)
        settings = self._model.generation_config
        self._defaults = (
            Defaults(settings.temperature or 1.0, settings.top_p or 1.0, settings.top_k or 0)
            if settings.do_sample
            else Defaults()
        )
        ends = settings.eos_token_id
        self._ends = {*(ends if isinstance(ends, list) else [ends]), self._tokenizer.eos_token_id} - {None}
        pad = self._tokenizer.pad_token_id
        self._pad: int = pad if pad is not None else min(self._ends, default=0)

    # Generation

    def generate(self, requests: Sequence[Request], wanted: Callable[[int], bool]) -> list[Response | FairnessError]:
        """Return the answers to several requests, generated in one batch; an error for each prompt that is too long.

        `wanted` says whether a caller still waits for the answer with an index.

        Raises:
            OutOfMemory: the batch is too large.
        """
        prompts = [self._prompt(request) for request in requests]
        limits = [self._max_new_tokens(len(prompt), request) for prompt, request in zip(prompts, requests, strict=True)]
        found: list[Response | FairnessError] = [self._too_long_error(len(prompt)) for prompt in prompts]
        rows = [row for row, limit in enumerate(limits) if limit > 0]
        if not rows:
            return found
        torch = self._torch
        width = max(len(prompts[row]) for row in rows)
        tokens = torch.tensor([[self._pad] * (width - len(prompts[row])) + prompts[row] for row in rows])
        mask = torch.tensor([[0] * (width - len(prompts[row])) + [1] * len(prompts[row]) for row in rows])
        sampler = TokenSampler([requests[row] for row in rows], self._defaults, torch, self.device)
        ending = Ending(width, [limits[row] for row in rows], lambda row: wanted(rows[row]), torch)
        with self._memory_errors(), torch.inference_mode():
            written = self._model.generate(
                input_ids=tokens.to(self.device),
                attention_mask=mask.to(self.device),
                generation_config=self._greedy_settings(max(limits[row] for row in rows)),
                logits_processor=[sampler],
                stopping_criteria=[ending],
            )[:, width:].tolist()
        for row, answer in zip(rows, written, strict=True):
            found[row] = self._answer(answer[: limits[row]], len(prompts[row]))
        return found

    def _prompt(self, request: Request) -> list[int]:
        """Return the tokens of a request: in the model's chat template or, without one, as plain text."""
        if not self._tokenizer.chat_template:
            return ids_of(self._tokenizer("\n\n".join(message.content for message in request.messages)))
        try:
            text = self._in_template(request.messages)
        except Exception:
            if request.system is None:
                raise
            # Some templates raise an error for the role `system`.
            first, *rest = request.conversation
            text = self._in_template([first._replace(content=f"{request.system}\n\n{first.content}"), *rest])
        return ids_of(self._tokenizer(text, add_special_tokens=False))

    def _in_template(self, messages: Sequence[Message]) -> str:
        chat = [message.to_json() for message in messages]
        text: str = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        return text

    def _max_new_tokens(self, prompt: int, request: Request) -> int:
        """Return the maximum number of answer tokens; 0 or less if none fits."""
        most = request.sampling.max_tokens or MAX_TOKENS
        return most if self._context is None else min(most, self._context - prompt)

    def _too_long_error(self, tokens: int) -> RequestFailed:
        return RequestFailed(
            f"{self._name}: a prompt has {tokens} tokens, too many for the model's context of {self._context} tokens. "
            "Shorten the prompt, or use another model."
        )

    def _greedy_settings(self, tokens: int) -> Any:
        """Return the model's generation settings with sampling switched off, because `TokenSampler` samples instead."""
        settings = copy.deepcopy(self._model.generation_config)
        settings.update(
            do_sample=False,
            temperature=1.0,
            top_p=1.0,
            top_k=50,  # the default, for which transformers does not warn
            num_beams=1,
            num_return_sequences=1,
            max_new_tokens=tokens,
            max_length=None,
            eos_token_id=sorted(self._ends) or None,
            pad_token_id=self._pad,
            return_dict_in_generate=False,
        )
        return settings

    def _answer(self, tokens: list[int], prompt: int) -> Response:
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        text = self._tokenizer.decode(tokens[:end], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return Response(
            text,
            finish_reason="length" if end is None else "stop",
            prompt_tokens=prompt,
            completion_tokens=len(tokens) if end is None else end + 1,
        )

    # Scoring

    def score(self, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Return the log-probabilities of each request's continuation; an error for each text that is too long.

        A text is a prompt and its continuation. It is scored without a chat template or system prompt, after the
        model's begin-of-text token (or, if the model has none, its end-of-text token). A token that begins in the
        prompt and ends in the continuation counts as part of the continuation.

        Raises:
            OutOfMemory: the batch is too large.
        """
        torch = self._torch
        texts = [self._tokenized(request) for request in requests]
        found: list[Response | FairnessError] = [self._too_long_error(len(tokens)) for tokens, _, _ in texts]
        rows = [
            row for row, (tokens, _, _) in enumerate(texts) if self._context is None or len(tokens) <= self._context
        ]
        if not rows:
            return found
        width = max(len(texts[row][0]) for row in rows)
        # In a causal model, later tokens such as the padding do not change earlier scores.
        tokens = torch.tensor([texts[row][0] + [self._pad] * (width - len(texts[row][0])) for row in rows])
        mask = torch.tensor([[1] * len(texts[row][0]) + [0] * (width - len(texts[row][0])) for row in rows])
        with self._memory_errors(), torch.inference_mode():
            scores = self._model(
                input_ids=tokens.to(self.device), attention_mask=mask.to(self.device), use_cache=False
            ).logits
            for place, row in enumerate(rows):
                found[row] = self._likelihood(scores[place], *texts[row])
        return found

    def _tokenized(self, request: Request) -> tuple[list[int], int, list[str]]:
        """Return the ids of all tokens, the number of tokens before the continuation, and the continuation's tokens."""
        text = request.prompt + (request.continuation or "")
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        spans = encoded["offset_mapping"]
        before = next((place for place, (_, end) in enumerate(spans) if end > len(request.prompt)), len(spans))
        start = self._tokenizer.bos_token_id
        start = start if start is not None else self._tokenizer.eos_token_id
        first = [] if start is None else [start]
        return first + ids_of(encoded), len(first) + before, [text[begin:end] for begin, end in spans[before:]]

    def _likelihood(self, scores: Any, tokens: list[int], before: int, pieces: list[str]) -> Response:
        """Return the response with each continuation token's log-probability; `None` if no other token precedes it.

        `scores` are (tokens, vocabulary); row t has the scores of all possible tokens after token t.
        """
        logs: list[float | None] = []
        if before == 0 and pieces:
            logs.append(None)
        known = range(max(before, 1), len(tokens))
        if known:
            rows = scores[known.start - 1 : known.stop - 1].float().log_softmax(-1)
            wanted = self._torch.tensor(tokens[known.start :], device=rows.device).unsqueeze(-1)
            logs += [round(log, DECIMALS) for log in rows.gather(-1, wanted).squeeze(-1).tolist()]
        return base.likelihood_response(pieces, logs, len(tokens))


# Embedding models loaded with `transformers`.

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
                found.append(base.embedding_response(numbers, tokens=len(row)))
            except ValueError as error:
                found.append(RequestFailed(f"{self._name}: the embedding of a text is not usable: {error}."))
        return found


def _pools_first_token(weights: Weights) -> bool:
    """Return whether the model's configuration selects the first token's hidden state; `False` if unreadable."""
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


# Sampling of tokens; each request has its own random numbers, which do not depend on the batch.


@dataclass(frozen=True)
class Defaults:
    """Default sampling parameters from the model's generation settings; a `top_k` of 0 allows all tokens."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


class TokenSampler:
    """Logits processor that samples the next token of each row, with the temperature, `top_p` and seed of its request.

    The largest log-probability after adding Gumbel noise is a sample from the distribution (Gumbel 1954; Maddison et
    al. 2014), so greedy decoding of the noisy scores is equivalent to sampling. The noise of a row depends only on its
    request and seed. The other rows of the batch may change the last bits of the log-probabilities; this changes the
    sampled token only if two noisy scores are almost equal.
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
        """Return (rows, vocabulary) scores in which the sampled token has the largest score of its row."""
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

    `width` is the number of tokens of the (padded) prompts.
    """

    def __init__(self, width: int, limits: Sequence[int], wanted: Callable[[int], bool], torch: Any) -> None:
        self._width, self._limits, self._wanted, self._torch = width, limits, wanted, torch

    def __call__(self, tokens: Any, _scores: Any, **_more: Any) -> Any:
        """Return whether each row is complete; shape (rows,)."""
        written = tokens.shape[1] - self._width
        done = [written >= limit or not self._wanted(row) for row, limit in enumerate(self._limits)]
        return self._torch.tensor(done, device=tokens.device)
