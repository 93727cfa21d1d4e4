"""Causal language models loaded with `transformers`, which continue prompts and score texts in batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pytest_fairness.errors import FairnessError, RequestFailed
from pytest_fairness.records import Message, Request, Response
from pytest_fairness.targets import likelihoods
from pytest_fairness.targets.transformers.loaded_model import LoadedModel, ids_of
from pytest_fairness.targets.transformers.token_sampling import Defaults, Ending, TokenSampler
from pytest_fairness.targets.transformers.weights import Weights

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

        Args:
            requests: the requests of the batch.
            wanted: function that returns whether a caller still waits for the answer with this index.

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
        """Return the tokens of a request: in the model's chat template or, if the model has none, as plain text."""
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
        """Return the maximum number of answer tokens after a prompt of `prompt` tokens; 0 or less if none fits."""
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
        """Return the response with the log-probability of each token of the continuation.

        The log-probability is `None` for a token that no other token precedes.

        Args:
            scores: shape (tokens, vocabulary); row t has the scores of all possible tokens after token t.
            tokens, before, pieces: the values that `_tokenized` returns.
        """
        logs: list[float | None] = []
        if before == 0 and pieces:
            logs.append(None)
        known = range(max(before, 1), len(tokens))
        if known:
            rows = scores[known.start - 1 : known.stop - 1].float().log_softmax(-1)
            wanted = self._torch.tensor(tokens[known.start :], device=rows.device).unsqueeze(-1)
            logs += [round(log, DECIMALS) for log in rows.gather(-1, wanted).squeeze(-1).tolist()]
        return likelihoods.response(pieces, logs, len(tokens))
