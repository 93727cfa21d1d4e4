"""Models loaded with `transformers`: causal ones continue prompts and score texts, others embed them; many at a time.

The only module that imports torch and transformers; it does so when a model is loaded.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError
from pytest_fairness.records import Request, Response
from pytest_fairness.targets import embeddings, likelihoods
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.transformers.batching import OutOfMemory
from pytest_fairness.targets.transformers.token_sampling import Defaults, Drawing, Ending
from pytest_fairness.targets.transformers.weights import Weights

MOST_TOKENS = 2048
"""Of an answer, where the probe sets no `max_tokens`."""
FEW_TOKENS = 512
"""Of a text to be embedded, where the model names no longest."""
DECIMALS = 5
"""Of recorded log-probabilities; what lies below depends on the batch."""


class LoadedModel:
    """A model and its tokenizer, in memory.

    Args:
        name: the target, for messages.
        weights: where it is.
        device: as `torch` calls it, or `None` for the best there is.

    Class attributes:
        auto_class: of transformers, that loads the model.

    Raises:
        TargetError: it is not there, cannot be fetched, or is no model that transformers can load as such.
    """

    auto_class: ClassVar[str]

    def __init__(self, name: str, weights: Weights, device: str | None) -> None:
        self._name = name
        # As for the embedded model: threads that wait for each other by spinning starve wherever cores are shared.
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
                f"{self._name}: {wanted!r} is no device that torch can use here ({one_line(error, 100)}): "
                f"cpu, cuda, cuda:1 or mps (ini fairness_device)."
            ) from error
        return device

    def _load(self, weights: Weights) -> tuple[Any, Any]:
        """Tokenizer and model; data only: no code that comes with a model is run, and no pickle is read."""
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
            raise TargetError(f"{self._name}: the model does not fit into the memory of {self.device}.") from error
        except Exception as error:
            raise TargetError(self._not_loaded(weights, error)) from error
        if not tokenizer.is_fast:
            raise TargetError(f"{self._name}: it has no fast tokenizer (tokenizer.json), which is needed here.")
        return tokenizer, model

    def _number_type(self, weights: Weights) -> Any:
        """Single precision on a CPU, which is slow at less; elsewhere as stored, and GGUF files in half precision."""
        if self.device.type == "cpu":
            return self._torch.float32
        return "auto" if weights.gguf is None else self._torch.bfloat16

    def _not_loaded(self, weights: Weights, error: Exception) -> str:
        said = one_line(error, 300)
        if weights.local or weights.cached:
            return f"{self._name}: it cannot be loaded: {type(error).__name__}: {said}"
        return (
            f"{self._name}: it is not on this machine and cannot be fetched ({said}). Check its name; fetch it where "
            f"there is a network with `hf download {weights.place}`, or name a folder that holds it."
        )

    @contextmanager
    def _memory(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error, self._torch):
                raise
        else:
            return
        # Outside of the handler, as the error holds on to what there is no room for.
        gc.collect()
        if self.device.type == "cuda":
            self._torch.cuda.empty_cache()
        raise OutOfMemory


class LanguageModel(LoadedModel):
    """A causal language model: continues prompts, and tells how likely texts are."""

    auto_class: ClassVar[str] = "AutoModelForCausalLM"

    def __init__(self, name: str, weights: Weights, device: str | None) -> None:
        super().__init__(name, weights, device)
        settings = self._model.generation_config
        drawn = bool(settings.do_sample)
        self._defaults = Defaults(
            (settings.temperature if drawn else None) or 1.0,
            (settings.top_p if drawn else None) or 1.0,
            (settings.top_k if drawn else None) or 0,
        )
        ends = settings.eos_token_id
        self._ends = {*(ends if isinstance(ends, list) else [ends]), self._tokenizer.eos_token_id} - {None}
        pad = self._tokenizer.pad_token_id
        self._pad: int = pad if pad is not None else min(self._ends, default=0)

    # Continuing

    def generate(self, requests: Sequence[Request], wanted: Callable[[int], bool]) -> list[Response | FairnessError]:
        """Answer prompts together, each with its own sampling, seed and `max_tokens`.

        Args:
            requests: what is asked.
            wanted: whether the request of this number is still waited for.

        Raises:
            OutOfMemory: these are too many at once.
        """
        prompts = [self._prompt(request) for request in requests]
        rooms = [self._room(len(prompt), request) for prompt, request in zip(prompts, requests, strict=True)]
        found: list[Response | FairnessError] = [self._too_long(len(prompt)) for prompt in prompts]
        rows = [row for row, room in enumerate(rooms) if room > 0]
        if not rows:
            return found
        torch = self._torch
        width = max(len(prompts[row]) for row in rows)
        tokens = torch.tensor([[self._pad] * (width - len(prompts[row])) + prompts[row] for row in rows])
        mask = torch.tensor([[0] * (width - len(prompts[row])) + [1] * len(prompts[row]) for row in rows])
        drawing = Drawing([requests[row] for row in rows], self._defaults, torch, self.device)
        ending = Ending(width, [rooms[row] for row in rows], lambda row: wanted(rows[row]), torch)
        with self._memory(), torch.inference_mode():
            written = self._model.generate(
                input_ids=tokens.to(self.device),
                attention_mask=mask.to(self.device),
                generation_config=self._greedy(max(rooms[row] for row in rows)),
                logits_processor=[drawing],
                stopping_criteria=[ending],
            )[:, width:].tolist()
        for row, answer in zip(rows, written, strict=True):
            found[row] = self._answer(answer[: rooms[row]], len(prompts[row]))
        return found

    def _prompt(self, request: Request) -> list[int]:
        """A request as the model reads it: by its chat template if it has one, else as it stands."""
        system = [] if request.system is None else [{"role": "system", "content": request.system}]
        whole = request.prompt if request.system is None else f"{request.system}\n\n{request.prompt}"
        if not self._tokenizer.chat_template:
            return _ids(self._tokenizer(whole))
        try:
            text = self._in_template([*system, {"role": "user", "content": request.prompt}])
        except Exception:
            if not system:
                raise
            # Some templates refuse the role.
            text = self._in_template([{"role": "user", "content": whole}])
        return _ids(self._tokenizer(text, add_special_tokens=False))

    def _in_template(self, messages: list[dict[str, str]]) -> str:
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text

    def _room(self, prompt: int, request: Request) -> int:
        """How many tokens an answer may have."""
        most = request.sampling.max_tokens or MOST_TOKENS
        return most if self._context is None else min(most, self._context - prompt)

    def _too_long(self, tokens: int) -> RequestFailed:
        return RequestFailed(f"{self._name}: {tokens} tokens are too long for a context of {self._context}.")

    def _greedy(self, tokens: int) -> Any:
        """The model's own settings, but for drawing, which is done here."""
        settings = copy.deepcopy(self._model.generation_config)
        settings.update(
            do_sample=False,
            temperature=1.0,
            top_p=1.0,
            top_k=50,  # the value that means nothing was set
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
        """How likely the model finds each continuation after its prompt, token by token.

        The text is scored as it stands, without chat template or system prompt, after the token that begins a text
        (that which ends one, for a model that knows no other). A token that begins before the continuation and ends
        within it is counted to it.

        Raises:
            OutOfMemory: these are too many at once.
        """
        torch = self._torch
        texts = [self._text(request) for request in requests]
        found: list[Response | FairnessError] = [self._too_long(len(tokens)) for tokens, _, _ in texts]
        rows = [
            row for row, (tokens, _, _) in enumerate(texts) if self._context is None or len(tokens) <= self._context
        ]
        if not rows:
            return found
        width = max(len(texts[row][0]) for row in rows)
        # What a causal model says of a token does not depend on what follows it, padding included.
        tokens = torch.tensor([texts[row][0] + [self._pad] * (width - len(texts[row][0])) for row in rows])
        mask = torch.tensor([[1] * len(texts[row][0]) + [0] * (width - len(texts[row][0])) for row in rows])
        with self._memory(), torch.inference_mode():
            scores = self._model(
                input_ids=tokens.to(self.device), attention_mask=mask.to(self.device), use_cache=False
            ).logits
            for place, row in enumerate(rows):
                found[row] = self._likelihood(scores[place], *texts[row])
        return found

    def _text(self, request: Request) -> tuple[list[int], int, list[str]]:
        """The tokens of a text, how many of them come before the continuation, and the pieces of the continuation."""
        text = request.prompt + (request.continuation or "")
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        spans = encoded["offset_mapping"]
        before = next((place for place, (_, end) in enumerate(spans) if end > len(request.prompt)), len(spans))
        start = self._tokenizer.bos_token_id
        start = start if start is not None else self._tokenizer.eos_token_id
        first = [] if start is None else [start]
        return first + _ids(encoded), len(first) + before, [text[begin:end] for begin, end in spans[before:]]

    def _likelihood(self, scores: Any, tokens: list[int], before: int, pieces: list[str]) -> Response:
        """The answer for one text; `scores` are (width, vocabulary), row t those of the token after t."""
        logs: list[float | None] = []
        if before == 0 and pieces:
            logs.append(None)
        known = range(max(before, 1), len(tokens))
        if known:
            rows = scores[known.start - 1 : known.stop - 1].float().log_softmax(-1)
            wanted = self._torch.tensor(tokens[known.start :], device=rows.device).unsqueeze(-1)
            logs += [round(log, DECIMALS) for log in rows.gather(-1, wanted).squeeze(-1).tolist()]
        return likelihoods.response(pieces, logs, len(tokens))


class TextEncoder(LoadedModel):
    """A model whose hidden states stand for texts: their mean over a text's tokens, as sentence-transformers pools.

    A model that says so (`pooling_mode_cls_token` in `1_Pooling/config.json`) has its first token taken instead. Texts
    are cut at the model's longest.
    """

    auto_class: ClassVar[str] = "AutoModel"

    def __init__(self, name: str, weights: Weights, device: str | None) -> None:
        super().__init__(name, weights, device)
        self._takes_first = _pools_first_token(weights)
        context = self._context or FEW_TOKENS
        # Two of a RoBERTa's positions are never a token's.
        context -= 2 if "roberta" in self._model.config.model_type else 0
        self._most = min(context, self._tokenizer.model_max_length)

    def embed(self, texts: Sequence[str]) -> list[Response | FairnessError]:
        """Return the embeddings of texts, together.

        Raises:
            OutOfMemory: these are too many at once.
        """
        torch = self._torch
        encoded = [_ids(self._tokenizer(text, truncation=True, max_length=self._most)) for text in texts]
        width = max(1, *map(len, encoded))
        pad = self._tokenizer.pad_token_id or 0
        tokens = torch.tensor([row + [pad] * (width - len(row)) for row in encoded], device=self.device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in encoded], device=self.device)
        with self._memory(), torch.inference_mode():
            states = self._model(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
            weights = mask.unsqueeze(-1)
            means = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
            rows = (states[:, 0] if self._takes_first else means).tolist()
        found: list[Response | FairnessError] = []
        for row, numbers in zip(encoded, rows, strict=True):
            try:
                found.append(embeddings.response(numbers, tokens=len(row)))
            except ValueError as error:
                found.append(RequestFailed(f"{self._name}: a text got no usable embedding: {error}."))
        return found


def _pools_first_token(weights: Weights) -> bool:
    from transformers.utils.hub import cached_file

    try:
        path = cached_file(
            weights.place,
            "1_Pooling/config.json",
            revision=weights.revision,
            _raise_exceptions_for_missing_entries=False,
        )
        settings = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):  # no network, or a file that is no JSON
        return False
    return isinstance(settings, dict) and settings.get("pooling_mode_cls_token") is True


def _is_out_of_memory(error: BaseException, torch: Any) -> bool:
    said = str(error).casefold()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "out of memory" in said or "can't allocate memory" in said or "not enough memory" in said
    )


def _ids(encoded: Any) -> list[int]:
    ids: list[int] = encoded["input_ids"]
    return ids


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from writing to the terminal while a model is loaded; what goes wrong is still raised."""
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
