"""Forecast of the requests, tokens and cost of a run, before any request is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np

from pytest_fairness.asking.claims import ANY_ANSWER, Freshness
from pytest_fairness.asking.engine import BATCH
from pytest_fairness.asking.limits import BATCH_PRICE, cost_of
from pytest_fairness.asking.store import response_key
from pytest_fairness.backends import chunks_of
from pytest_fairness.errors import FairnessError
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Json, Prompt, Request, Response
from pytest_fairness.run import variants
from pytest_fairness.run.items import RECENT, ProbeItem, selected
from pytest_fairness.run.measuring import read_all
from pytest_fairness.run.run import Run
from pytest_fairness.targets import registry
from pytest_fairness.targets.base import Target, has_batches

CHARACTERS_PER_TOKEN = 4.0
"""Average number of characters per token in English text; used if no recorded answer allows an estimate."""
STAND_IN = Response("…")
"""Response that takes the place of answers that are not recorded or not read, so that later turns of conversations are
counted."""

ShortKeys: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]
"""First 64 bits of the keys of several requests."""


@dataclass(frozen=True)
class Forecast:
    """Requests that one probe would send.

    Attributes:
        name: name of the probe; `PROBE@TARGET` for one of several targets.
        file: path of the probe's file, as in node ids.
        requests: number of distinct requests that the selected items need.
        equal_prompts: numbers of units and of different prompts; see `Probe.equal_prompts_text`.
        placebo: number of these requests that only the placebo swap needs.
        recorded: number of these requests with a recorded response that the run reuses.
        shared: number of requests without a recorded response that an earlier probe also needs.
        later: maximum number of further requests, which are sent only while a verdict is inconclusive.
        prompt_tokens: estimated number of prompt tokens in all requests to send; `None` without requests to send.
        completion_tokens: estimated number of tokens in their responses; `None` without requests to send, or if neither
            recorded responses nor `max_tokens` allow an estimate.
        known: number of recorded responses, of any age, from which the tokens are estimated. If it is 0, the tokens are
            estimated from the length of the prompts and from `max_tokens`; `completion_tokens` is then an upper limit.
        cost: cost of all tokens; `None` if a number of tokens or the target's price is unknown.
        batch_cost: cost of all tokens in batches of the provider; `None` if not all requests are sent in batches, or if
            `cost` is `None`.
        has_turns: whether the requests of later turns of conversations are counted; a conversation whose answer is
            missing ends earlier.
        may_ask_more: whether answers can lead to follow-up requests. `requests` includes the follow-up requests of an
            item only if responses to all earlier requests of the item are recorded.
        judge_requests: maximum number of requests to the judge model; equal answers are judged once.
        embedded: maximum number of texts sent to each embedding model, by the model's name in the probe; equal texts
            are sent once. Texts of baselines are not counted; their embeddings are usually recorded.
        unknown_target: whether a fixture of the user provides the target, so that recorded responses cannot be found.
    """

    name: str
    file: str
    requests: int
    equal_prompts: str
    placebo: int
    recorded: int
    shared: int
    later: int
    prompt_tokens: float | None
    completion_tokens: float | None
    known: int
    cost: float | None
    batch_cost: float | None
    has_turns: bool
    may_ask_more: bool
    judge_requests: int
    embedded: Mapping[str, int]
    unknown_target: bool

    @property
    def to_send(self) -> int:
        return self.requests - self.recorded - self.shared

    def to_json(self) -> dict[str, Json]:
        return {**asdict(self), "to_send": self.to_send}


class Forecaster:
    """Forecaster of a run's requests, probe by probe.

    If several probes need the same request, it counts as a request to send for the first of them only.

    Args:
        run: the run; no request is sent.
        last_only: whether the run makes only the final analysis, which needs all answers; true for new baselines.
    """

    def __init__(self, run: Run, *, last_only: bool = False) -> None:
        self._run = run
        self._first = -1 if last_only else 0
        self._seen: set[str] = set()
        self._stand_ins: dict[int, Response] = {}

    def forecast(self, file: str, items: Sequence[ProbeItem], target: Target | None) -> Forecast:
        """Return the forecast for the selected items of one probe.

        Args:
            file: path of the probe's file, as in node ids.
            items: at least one item; all belong to one probe and one target.
            target: the target; `None` if a fixture of the user provides it.
        """
        probe, follow_ups = items[0].probe, items[0].probe.follow_ups
        requests: dict[str, Request] = {}
        later: set[str] = set()
        measured_keys: set[str] = set()
        embedded: defaultdict[str, set[str]] = defaultdict(set)
        of_placebos = [placebo for item in items if (placebo := variants.placebo_of(item)) is not None]
        of_variants = [variant for item in items for variant in variants.variants_of(item).values()]
        counts = []
        for group in (items, of_placebos, of_variants) if items[0].asks else ():
            for item in group:
                requests |= self._requests_of(item.analyses[self._first], target)
                later |= self._requests_of(item.analyses[-1], target).keys()
                keys = set(self._keys(item.analyses[-1].prompts(), target))
                measured_keys |= keys
                if (embedder := item.models.embedder) is not None:
                    embedded[embedder] |= keys
            counts.append(len(requests))
        recorded = self._recorded(target, requests)
        left = {key: request for key, request in requests.items() if key not in recorded}
        new = [request for key, request in left.items() if key not in self._seen]
        self._seen |= left.keys()
        prompt_tokens, completion_tokens, known = self._tokens(target, requests, new)
        price = target and self._run.settings.price_of(target.name)
        in_batches = self._run.settings.in_batches and target is not None and has_batches(target)
        cost = None
        if price and prompt_tokens is not None and completion_tokens is not None:
            cost = cost_of(price, prompt_tokens, completion_tokens)
        return Forecast(
            name=items[0].baseline_name,
            file=file,
            requests=len(requests),
            equal_prompts=probe.equal_prompts_text if requests else "",
            placebo=counts[1] - counts[0] if counts else 0,
            recorded=len(recorded),
            shared=len(left) - len(new),
            later=len(later - requests.keys()),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            known=known,
            cost=cost,
            batch_cost=cost * BATCH_PRICE if cost is not None and in_batches and not follow_ups.are_turns else None,
            has_turns=bool(requests) and follow_ups.are_turns,
            may_ask_more=bool(requests) and follow_ups.possible and not follow_ups.are_turns,
            judge_requests=len(measured_keys) * probe.reading.judge_votes,
            embedded={name: len(keys) for name, keys in embedded.items()},
            unknown_target=target is None and bool(requests),
        )

    def _requests_of(self, item: ProbeItem, target: Target | None) -> dict[str, Request]:
        """Return the requests of an item by key, with all turns of conversations.

        Other follow-up requests are included only if responses to all earlier requests are recorded.
        """
        probe, prompts = item.probe, list(item.prompts())
        requests = self._requests_by_key(prompts, target)
        while probe.follow_ups.possible:
            recorded = self._recorded(target, requests)
            if len(recorded) < len(requests) and not probe.follow_ups.are_turns:
                break
            stand_in = self._stand_in(probe, recorded)
            responses = [recorded.get(key, stand_in) for key in self._keys(prompts, target)]
            more = probe.follow_ups.next_prompts(read_all(prompts, responses, probe.language))
            if not more:
                break
            prompts += more
            requests |= self._requests_by_key(more, target)
        return requests

    def _stand_in(self, probe: Probe, recorded: Mapping[str, Response]) -> Response:
        """Return a response of a likely length, which takes the place of unrecorded answers in conversations.

        All items of a probe get the same response, so that a conversation that they share is counted once.
        """
        if id(probe) not in self._stand_ins:
            limit = (probe.sampling.max_tokens or 0) * CHARACTERS_PER_TOKEN
            lengths = [len(response.text) for response in recorded.values()]
            length = sum(lengths) / len(lengths) if lengths else limit
            self._stand_ins[id(probe)] = Response("…" * max(1, round(length)))
        return self._stand_ins[id(probe)]

    def _requests_by_key(self, prompts: Iterable[Prompt], target: Target | None) -> dict[str, Request]:
        return dict(zip(self._keys(prompts, target), (prompt.request for prompt in prompts), strict=True))

    def _keys(self, prompts: Iterable[Prompt], target: Target | None) -> list[str]:
        return [response_key(target.identity if target else "", prompt.request) for prompt in prompts]

    def _recorded(
        self, target: Target | None, keys: Iterable[str], fresh: Freshness | None = None
    ) -> dict[str, Response]:
        # `self._run.store` would create a missing store.
        if target is None or not self._run.settings.store.exists():
            return {}
        return self._run.store.get(keys, fresh or self._run.engines.freshness(target))

    def _tokens(
        self, target: Target | None, requests: Mapping[str, Request], new: Sequence[Request]
    ) -> tuple[float | None, float | None, int]:
        """Estimate the tokens of the requests `new`.

        Returns:
            Values of `Forecast.prompt_tokens`, `Forecast.completion_tokens` and `Forecast.known`.
        """
        if not new:
            return None, None, 0
        known = [
            (response.prompt_tokens, response.completion_tokens, _length(requests[key]))
            for key, response in self._recorded(target, requests, ANY_ANSWER).items()
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
    """Numbers of distinct requests of a run to one target.

    Attributes:
        to_send: number of requests that the run must send.
        recorded: number of requests with a recorded response that the run reuses.
        oldest: date of the oldest of these responses, in seconds since the epoch; `None` without responses.
    """

    to_send: int
    recorded: int
    oldest: float | None = None


def count_requests(run: Run, target: Target | None, analyses: Iterable[ProbeItem]) -> RequestCount:
    """Return the numbers of requests to a target: those of the items, their placebos and their variants.

    All turns of conversations are counted, but no other follow-up requests. The requests are not kept in memory,
    because there may be millions.

    Args:
        run: the run; no request is sent.
        target: the target; `None` if a fixture of the user provides it, so that recorded responses cannot be found.
        analyses: the items, each at the interim or final analysis whose requests are counted.
    """
    identity = target.identity if target else ""
    shard = None if target is None else run.settings.shard
    none = np.empty(0, np.uint64)
    needed, recorded, oldest = [none], [none], []

    def add(keys: Sequence[str], *, read: bool = False) -> list[Response]:
        """Count the requests with these keys, and return a response to each.

        If `read` is set, recorded responses are read from the store; all other responses are `STAND_IN`.
        """
        needed.append(_short_keys(keys))
        if target is not None and (found := list(run.engines.recorded(target, keys))):
            recorded.append(_short_keys(found))
            oldest.append(run.engines.oldest_of(found))
            responses = run.store.get(found, run.engines.freshness(target)) if read else {}
            return [responses.get(key, STAND_IN) for key in keys]
        return [STAND_IN] * len(keys)

    def own_part(prompts: Iterable[Prompt]) -> Iterator[tuple[str, Prompt]]:
        """Yield the prompts whose requests the run sends to this target, each with its request's key."""
        asked = (each for each in prompts if target is None or registry.can_answer(target, each.request))
        keyed = ((response_key(identity, prompt.request), prompt) for prompt in asked)
        return keyed if shard is None else (each for each in keyed if shard.holds(each[0]))

    by_probe = _prompts(analyses)
    single = chain.from_iterable(prompts for probe, prompts in by_probe if not probe.follow_ups.are_turns)
    for some in chunks_of(own_part(single), BATCH):
        add([key for key, _ in some])
    for probe, prompts in by_probe:
        for some in chunks_of(own_part(prompts), BATCH) if probe.follow_ups.are_turns else ():
            own: Sequence[Prompt] = [prompt for _, prompt in some]
            answers: list[Answer] = []
            while own:
                # The next turns of a conversation depend on the responses.
                responses = add([response_key(identity, prompt.request) for prompt in own], read=True)
                answers += read_all(own, responses, probe.language)
                own = probe.follow_ups.next_prompts(answers)
    total, reused = _distinct(needed), _distinct(recorded)
    return RequestCount(
        total - reused, reused, min((created for created in oldest if created is not None), default=None)
    )


def _distinct(slices: Sequence[ShortKeys]) -> int:
    """Return the number of different keys, without `np.unique`, which would import `numpy.ma`."""
    keys = np.sort(np.concatenate(slices))
    return int(np.count_nonzero(np.diff(keys))) + (len(keys) > 0)


def _short_keys(keys: Sequence[str]) -> ShortKeys:
    """Return the first 64 bits of each key: enough to distinguish millions of keys, in an eighth of the memory."""
    return np.fromiter((int(key[:16], 16) for key in keys), np.uint64, len(keys))


def _prompts(analyses: Iterable[ProbeItem]) -> list[tuple[Probe, Iterator[Prompt]]]:
    """Return the probes of items, of their placebos and of their variants, each with the prompts of its items.

    All items of a probe with the same stage and number of trials share one iterator, which yields each prompt once.
    """
    alike: defaultdict[object, list[ProbeItem]] = defaultdict(list)
    for analysis in analyses:
        for item in (analysis, *variants.further_items(analysis)):
            alike[id(item.probe), item.trial_count, item.stage].append(item)
    return [(items[0].probe, _prompts_of(items)) for items in alike.values()]


def _prompts_of(items: Sequence[ProbeItem]) -> Iterator[Prompt]:
    with suppress(FairnessError):  # the set-up of the item reports the error in its prompts
        yield from selected(
            RECENT.prompts_of(items[0].probe, items[0].trial_count),
            lambda labels: any(item.uses(labels) for item in items),
        )


def _length(request: Request) -> int:
    return len(request.tools) + sum(len(message.content) for message in request.messages)
