"""What a run would send, counted and estimated without sending anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np

from pytest_fairness.asking.costs import cost_of
from pytest_fairness.asking.engine import BATCH
from pytest_fairness.asking.store.freshness import ANY_ANSWER, Freshness
from pytest_fairness.asking.store.store import response_key
from pytest_fairness.errors import FairnessError
from pytest_fairness.probes import Probe
from pytest_fairness.records import Json, Prompt, Request, Response
from pytest_fairness.run.answering.item_answers import read_all
from pytest_fairness.run.measuring import variants
from pytest_fairness.run.probe_items import ProbeItem
from pytest_fairness.run.run import Run
from pytest_fairness.targets import likelihood_support
from pytest_fairness.targets.base import Target

CHARACTERS_PER_TOKEN = 4.0
"""Of English text with today's tokenizers; used where no recorded answer says better."""


@dataclass(frozen=True)
class Forecast:
    """What one probe would send.

    Attributes:
        name: the probe's, and which of several targets is asked.
        file: as node ids name it.
        requests: distinct requests that its selected items need.
        recorded: of these, have a recorded answer that counts.
        shared: of the others, are asked by a probe before this one anyway.
        later: further requests, at most, that are asked only while a verdict is open.
        prompt_tokens: estimate for what is left to send, or `None` where nothing is.
        completion_tokens: the same; `None` also where nothing bounds the answers.
        known: recorded answers of any age from which tokens were estimated; 0 where the prompts' length and
            `max_tokens` had to do, so that `completion_tokens` is the most there can be.
        cost: of these tokens, where the target has a price and both numbers are known.
        may_ask_more: whether answers can call for further questions, which are not counted.
        judge_requests: what a judge model is asked about the answers, at most; equal answers are asked about once.
        embedded: texts that models of embeddings are sent, at most, by the model as the probe names it; equal texts are
            sent once, and those of a baseline, which are sent where they are not recorded, are not counted.
        unknown_target: whether a fixture of the user's says who is asked, so that recorded answers cannot be looked up.
    """

    name: str
    file: str
    requests: int
    recorded: int
    shared: int
    later: int
    prompt_tokens: float | None
    completion_tokens: float | None
    known: int
    cost: float | None
    may_ask_more: bool
    judge_requests: int
    embedded: Mapping[str, int]
    unknown_target: bool

    @property
    def to_send(self) -> int:
        """Requests that this probe adds to the run."""
        return self.requests - self.recorded - self.shared

    def to_json(self) -> dict[str, Json]:
        """Plain JSON."""
        return {**asdict(self), "to_send": self.to_send}


class Forecaster:
    """Forecasts the probes of a run one after the other; a request that several share is the first one's.

    Args:
        run: nothing of it is asked.
        rebaseline: whether everything that may be asked is, as for a new baseline.
    """

    def __init__(self, run: Run, *, rebaseline: bool = False) -> None:
        self._run = run
        self._first = -1 if rebaseline else 0
        self._seen: set[str] = set()

    def forecast(self, file: str, items: Sequence[ProbeItem], target: Target | None) -> Forecast:
        """What the selected items of one probe would send.

        Args:
            file: as node ids name it.
            items: the items, at least one, all of one probe and one target.
            target: who would be asked; `None` where only a fixture of the user's knows.
        """
        probe = items[0].probe
        questions: dict[str, Request] = {}
        later: set[str] = set()
        embedded: defaultdict[str, set[str]] = defaultdict(set)
        worded = [each for item in items for each in (item, *variants.variants_of(item).values())]
        for item in worded if items[0].asks else ():
            own = self._questions(item.looks[self._first], target)
            most = self._keys(list(item.looks[-1].prompts()), target).keys()
            questions |= own
            later |= most
            if (embedder := item.embedder) is not None:
                embedded[embedder] |= own.keys() | most
        recorded = self._recorded(target, questions)
        left = {key: request for key, request in questions.items() if key not in recorded}
        new = [request for key, request in left.items() if key not in self._seen]
        self._seen |= left.keys()
        prompt_tokens, completion_tokens, known = self._tokens(target, questions, new)
        price = target and self._run.settings.price_of(target.name)
        cost = None
        if price and prompt_tokens is not None and completion_tokens is not None:
            cost = cost_of(price, prompt_tokens, completion_tokens)
        return Forecast(
            name=items[0].baseline_name,
            file=file,
            requests=len(questions),
            recorded=len(recorded),
            shared=len(left) - len(new),
            later=len(later - questions.keys()),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            known=known,
            cost=cost,
            may_ask_more=bool(questions) and type(probe).follow_ups is not Probe.follow_ups,
            judge_requests=len(questions.keys() | later) * probe.judging.votes if probe.judging else 0,
            embedded={name: len(keys) for name, keys in embedded.items()},
            unknown_target=target is None and bool(questions),
        )

    def _questions(self, item: ProbeItem, target: Target | None) -> dict[str, Request]:
        """By key: what the item asks for certain, and what recorded answers make it ask next."""
        prompts: list[Prompt] = list(item.prompts())
        questions = self._keys(prompts, target)
        while target is not None and len(recorded := self._recorded(target, questions)) == len(questions):
            more = item.probe.follow_ups(read_all(prompts, [recorded[key] for key in self._in_order(prompts, target)]))
            if not more:
                break
            prompts += more
            questions |= self._keys(more, target)
        return questions

    def _keys(self, prompts: Iterable[Prompt], target: Target | None) -> dict[str, Request]:
        return dict(zip(self._in_order(prompts, target), (prompt.request for prompt in prompts), strict=True))

    def _in_order(self, prompts: Iterable[Prompt], target: Target | None) -> list[str]:
        return [response_key(target.identity if target else "", prompt.request) for prompt in prompts]

    def _recorded(
        self, target: Target | None, keys: Iterable[str], fresh: Freshness | None = None
    ) -> dict[str, Response]:
        # A store that is not there is not made either.
        if target is None or not self._run.settings.store.exists():
            return {}
        return self._run.store.get(keys, fresh or self._run.engines.freshness(target))

    def _tokens(
        self, target: Target | None, questions: Mapping[str, Request], new: Sequence[Request]
    ) -> tuple[float | None, float | None, int]:
        if not new:
            return None, None, 0
        known = [
            (response.prompt_tokens, response.completion_tokens, _length(questions[key]))
            for key, response in self._recorded(target, questions, ANY_ANSWER).items()
            if response.prompt_tokens is not None and response.completion_tokens is not None
        ]
        length = sum(map(_length, new))
        if known:
            per_character = sum(prompt for prompt, _, _ in known) / max(1, sum(length for _, _, length in known))
            return (
                length * per_character,
                len(new) * sum(completion for _, completion, _ in known) / len(known),
                len(known),
            )
        limits = [request.sampling.max_tokens for request in new]
        bound = None if None in limits else float(sum(limit or 0 for limit in limits))
        return length / CHARACTERS_PER_TOKEN, bound, 0


@dataclass(frozen=True)
class RequestCount:
    """How many distinct requests a run needs of one target.

    Attributes:
        to_send: those without a recorded answer that counts.
        recorded: those with one.
        oldest: when the oldest of these answers came, in seconds since the epoch; `None` where there is none.
    """

    to_send: int
    recorded: int
    oldest: float | None = None


def count_requests(run: Run, target: Target | None, looks: Iterable[ProbeItem]) -> RequestCount:
    """Count what items ask as far as it is known before any answer; there may be millions of requests.

    Args:
        run: nothing of it is asked.
        target: who would be asked; `None` where only a fixture of the user's knows, so that nothing can be looked up.
        looks: the items, each at the look that is planned.

    Raises:
        StoreError: the recorded answers cannot be read.
    """
    identity = target.identity if target else ""
    rest = (
        response_key(identity, request)
        for request in _requests(looks)
        if target is None or likelihood_support.can_be_asked(target, request)
    )
    none = np.empty(0, np.uint64)
    needed, recorded, oldest = [none], [none], []
    while keys := list(islice(rest, BATCH)):
        needed.append(_short(keys))
        if target is not None and (found := list(run.engines.recorded(target, keys))):
            recorded.append(_short(found))
            oldest.append(run.engines.oldest_of(found))
    total, reused = (len(np.unique(np.concatenate(slices))) for slices in (needed, recorded))
    return RequestCount(
        total - reused, reused, min((created for created in oldest if created is not None), default=None)
    )


def _short(keys: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return the first 64 bits of each key: enough to count millions of them, in an eighth of the memory."""
    return np.fromiter((int(key[:16], 16) for key in keys), np.uint64, len(keys))


def _requests(looks: Iterable[ProbeItem]) -> Iterator[Request]:
    """Yield what items and their variants ask; what several items of a probe share mostly comes once."""
    alike: defaultdict[object, list[ProbeItem]] = defaultdict(list)
    for look in looks:
        for item in (look, *variants.variants_of(look).values()):
            alike[id(item.probe), item.draws, item.stage].append(item)
    for items in alike.values():
        with suppress(FairnessError):  # what cannot be asked is told by the item's set-up
            for prompt in items[0].probe.prompts(items[0].draws):
                if any(item.uses(prompt.labels) for item in items):
                    yield prompt.request


def _length(request: Request) -> int:
    return len(request.system or "") + len(request.prompt)
