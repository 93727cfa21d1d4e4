"""Forecast of the requests, tokens and cost of a run, before any request is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np

from pytest_fairness.asking.claims import ANY_ANSWER, Freshness
from pytest_fairness.asking.engine import BATCH
from pytest_fairness.asking.limits import BATCH_PRICE, cost_of
from pytest_fairness.asking.store import response_key
from pytest_fairness.backends import chunks_of
from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.probes import Probe
from pytest_fairness.records import Answer, Prompt, Request, Response
from pytest_fairness.reports.formatting import money, printable
from pytest_fairness.run import variants
from pytest_fairness.run.items import RECENT, ProbeItem, selected
from pytest_fairness.run.measuring import read_all
from pytest_fairness.run.nights import expected_failures
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


def turns(
    probe: Probe,
    prompts: Sequence[Prompt],
    responses_to: Callable[[Sequence[Prompt]], Sequence[Response | None]],
    stand_in: Callable[[], Response],
) -> Iterator[Sequence[Prompt]]:
    """Yield the prompts, then the follow-up prompts to their answers, until there are none.

    Turns of conversations follow on answers that are not recorded, too; other follow-up prompts do not.
    """
    answers: list[Answer] = []
    while prompts:
        yield prompts
        if not probe.follow_ups.possible:
            return
        responses = responses_to(prompts)
        if None in responses and not probe.follow_ups.are_turns:
            return
        answers += read_all(prompts, [response or stand_in() for response in responses], probe.language)
        prompts = probe.follow_ups.next_prompts(answers)


# Option `--fairness-dry-run`: requests that a run would send, probe by probe, with their tokens and cost.


@dataclass(frozen=True)
class Tokens:
    """Estimated tokens of requests to send.

    Attributes:
        prompt: tokens of the requests.
        completion: tokens of their responses; `None` if neither recorded responses nor `max_tokens` allow an estimate.
        known: number of recorded responses, of any age, from which the tokens are estimated. If it is 0, the tokens are
            estimated from the length of the prompts and from `max_tokens`; `completion` is then an upper limit.
    """

    prompt: float
    completion: float | None
    known: int


class Forecaster:
    """Forecaster of a run's requests, probe by probe.

    If several probes need the same request, it counts as a request to send for the first of them only.

    Args:
        run: the run; no request is sent.
        last_only: whether the run makes only the final analysis, which needs all answers; true for new baselines.
    """

    def __init__(self, run: Run, *, last_only: bool = False) -> None:
        self._run, self._last_only = run, last_only
        self._seen: set[str] = set()
        self._errors: list[tuple[float | None, float | None, float]] = []
        """Error of the change, tolerance and alpha of each item that has a baseline."""
        self._stand_ins: dict[int, Response] = {}
        self._lines: list[str] = []
        self._to_send = 0
        self._has_turns = self._may_ask_more = False
        self._costs: list[tuple[float | None, float | None, bool]] = []
        """Cost, cost in batches, and whether answers are known, of each probe with requests to send."""

    def add(self, file: str, items: Sequence[ProbeItem], target: Target | None) -> None:
        """Count the requests of the selected items of one probe.

        Args:
            file: path of the probe's file, as in node ids.
            items: at least one item; all belong to one probe and one target.
            target: the target; `None` if a fixture of the user provides it.
        """
        probe, follow_ups = items[0].probe, items[0].probe.follow_ups
        title = printable(f"{items[0].baseline_name} ({file})")
        if not items[0].asks:
            self._lines.append(f"{title}: no requests, because its answers are in a file")
            return
        self._errors += self._run.baselines.errors_of_changes(items)
        requests: dict[str, Request] = {}
        later: set[str] = set()
        measured_keys: set[str] = set()
        embedded: defaultdict[str, set[str]] = defaultdict(set)
        of_placebos = [placebo for item in items if (placebo := variants.placebo_of(item)) is not None]
        of_variants = [variant for item in items for variant in variants.variants_of(item).values()]
        counts = []
        for group in (items, of_placebos, of_variants):
            for item in group:
                requests |= self._requests_of(item.analyses[-1 if self._last_only else 0], target)
                later |= self._requests_of(item.analyses[-1], target).keys()
                keys = set(_keys(item.analyses[-1].prompts(), target))
                measured_keys |= keys
                if (embedder := item.models.embedder) is not None:
                    embedded[embedder] |= keys
            counts.append(len(requests))
        recorded = self._recorded(target, requests)
        left = {key: request for key, request in requests.items() if key not in recorded}
        new = [request for key, request in left.items() if key not in self._seen]
        self._seen |= left.keys()
        self._to_send += len(new)
        self._has_turns |= follow_ups.are_turns and bool(new)
        self._may_ask_more |= follow_ups.possible and not follow_ups.are_turns

        shared = f"{len(left) - len(new):,} shared with the probes above, " if len(left) > len(new) else ""
        most = "at most " if follow_ups.are_turns and new else ""
        needed = f"{most}{counted(len(requests), 'request')}, {len(recorded):,} recorded"
        self._lines.append(f"{title}: {needed}, {shared}{len(new):,} to send")
        more = [probe.equal_prompts_text]
        if follow_ups.are_turns:
            more.append("including all turns of conversations; a conversation ends early if an answer is missing")
        if placebos := counts[1] - counts[0]:
            more.append(f"including {placebos:,} for the placebo swap (`placebo: false` under `swap` saves these)")
        if further := len(later - requests.keys()):
            more.append(f"up to {counted(further, 'further request')} while verdicts are inconclusive")
        if judged := len(measured_keys) * probe.reading.judge_votes:
            more.append(f"up to {counted(judged, 'request')} to the judge model")
        more += [
            f"up to {counted(len(texts), 'text')}, and the texts of the baseline, are sent to {printable(name)} for "
            "embeddings"
            for name, texts in embedded.items()
        ]
        if target is None:
            more.append(
                "the fixture fairness_target sets the target, so the recorded answers are not known yet: fewer "
                "requests may be sent"
            )
        more += self._cost_lines(target, requests, new, has_turns=follow_ups.are_turns) if new else []
        self._lines += [f"  {line}" for line in more if line]

    def lines(self, tests: int) -> list[str]:
        """Return the forecast of the run: the lines of each probe, and the total."""
        settings, total = self._run.settings, self._to_send
        most = "at most " if self._has_turns else ""
        to = f" to {printable(self._run.targets.description)}" if self._lines else ", because no probe is selected"
        cost = ""
        if self._costs and all(cost is not None for cost, _, _ in self._costs):
            word = "about" if all(known for _, _, known in self._costs) else "at most about"
            batched = [batch for _, batch, _ in self._costs if batch is not None]
            cost = f", cost {word} {money(sum(cost or 0.0 for cost, _, _ in self._costs))}"
            cost += f", by batch about {money(sum(batched))}" if len(batched) == len(self._costs) else ""
        expected = expected_failures(self._errors, used=self._run.nights.used)
        lines = [*self._lines, f"total: {most}{counted(total, 'request')}{to}{cost}; nothing was sent"]
        lines += [expected] if expected else []
        if settings.replay and total:
            lines.append("--fairness-replay sends none of these requests: items that need them would end in an error")
        elif settings.max_requests is not None and total > settings.max_requests:
            lines.append(
                f"--fairness-max-requests allows only {settings.max_requests:,} of these requests: some items would "
                "lack answers"
            )
        not_counted = ["retries"] if total else []
        not_counted += ["follow-up requests that depend on answers"] if self._may_ask_more else []
        not_counted += [f"requests of {counted(tests, 'Python test')}"] if tests else []
        return [*lines, *([f"not counted: {', '.join(not_counted)}"] if not_counted else [])]

    def price_of_request(self, target: Target | None, requests: Mapping[str, Request]) -> float | None:
        """Return the mean cost of a request, from recorded answers or `max_tokens`; `None` if it is not known."""
        price = target and self._run.settings.price_of(target.name)
        tokens = self._tokens(target, requests, list(requests.values()))
        if not price or tokens.completion is None or not requests:
            return None
        return cost_of(price, tokens.prompt, tokens.completion) / len(requests)

    def _cost_lines(
        self, target: Target | None, requests: Mapping[str, Request], new: Sequence[Request], *, has_turns: bool
    ) -> list[str]:
        tokens, settings = self._tokens(target, requests, new), self._run.settings
        price = target and settings.price_of(target.name)
        cost = None if not price or tokens.completion is None else cost_of(price, tokens.prompt, tokens.completion)
        by_batch = settings.in_batches and target is not None and has_batches(target) and not has_turns
        batch_cost = None if cost is None or not by_batch else cost * BATCH_PRICE
        self._costs.append((cost, batch_cost, tokens.known > 0))
        if tokens.known:
            basis = f"(estimated from {counted(tokens.known, 'recorded answer')})"
            lines = [f"about {tokens.prompt:,.0f} prompt and {tokens.completion:,.0f} completion tokens {basis}"]
        else:
            answers = (
                "an unlimited number of completion tokens (no max_tokens)"
                if tokens.completion is None
                else f"at most {tokens.completion:,.0f} completion tokens (max_tokens)"
            )
            lines = [f"about {tokens.prompt:,.0f} prompt tokens (4 characters each) and {answers}"]
        if cost is not None:
            word = "about" if tokens.known else "at most about"
            batch = "" if batch_cost is None else f", by batch about {money(batch_cost)}"
            lines.append(f"cost: {word} {money(cost)} (fairness_prices){batch}")
        return lines

    def _requests_of(self, item: ProbeItem, target: Target | None) -> dict[str, Request]:
        """Return the requests of an item by key, with all turns of conversations.

        Other follow-up requests are included only if responses to all earlier requests are recorded.
        """
        requests: dict[str, Request] = {}

        def responses_to(prompts: Sequence[Prompt]) -> list[Response | None]:
            keys = _keys(prompts, target)
            recorded = self._recorded(target, keys)
            if id(item.probe) not in self._stand_ins:
                # A response of a likely length; all items of a probe have the same, so that a conversation that they
                # share is counted once.
                limit = (item.probe.sampling.max_tokens or 0) * CHARACTERS_PER_TOKEN
                length = sum(len(each.text) for each in recorded.values()) / len(recorded) if recorded else limit
                self._stand_ins[id(item.probe)] = Response("…" * max(1, round(length)))
            return [recorded.get(key) for key in keys]

        for prompts in turns(item.probe, list(item.prompts()), responses_to, lambda: self._stand_ins[id(item.probe)]):
            requests |= requests_by_key(prompts, target)
        return requests

    def _recorded(
        self, target: Target | None, keys: Iterable[str], fresh: Freshness | None = None
    ) -> dict[str, Response]:
        # `run.store` would create a missing store.
        if target is None or not self._run.settings.store.exists():
            return {}
        return self._run.store.get(keys, fresh or self._run.engines.freshness(target))

    def _tokens(self, target: Target | None, requests: Mapping[str, Request], new: Sequence[Request]) -> Tokens:
        known = [
            (response.prompt_tokens, response.completion_tokens, _length(requests[key]))
            for key, response in self._recorded(target, requests, ANY_ANSWER).items()
            if response.prompt_tokens is not None and response.completion_tokens is not None
        ]
        length = sum(map(_length, new))
        if known:
            per_character = sum(prompt for prompt, _, _ in known) / max(1, sum(length for _, _, length in known))
            completion = len(new) * sum(completion for _, completion, _ in known) / len(known)
            return Tokens(length * per_character, completion, len(known))
        limits = [request.sampling.max_tokens for request in new]
        bound = None if None in limits else float(sum(limit or 0 for limit in limits))
        return Tokens(length / CHARACTERS_PER_TOKEN, bound, 0)


def requests_by_key(prompts: Iterable[Prompt], target: Target | None) -> dict[str, Request]:
    return {response_key(target.identity if target else "", prompt.request): prompt.request for prompt in prompts}


def _keys(prompts: Iterable[Prompt], target: Target | None) -> list[str]:
    return [response_key(target.identity if target else "", prompt.request) for prompt in prompts]


def _length(request: Request) -> int:
    return len(request.tools) + sum(len(message.content) for message in request.messages)


# Header of a run: numbers of requests, counted in little memory.


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
    shard = None if target is None else run.settings.shard
    none = np.empty(0, np.uint64)
    needed, recorded, oldest = [none], [none], []

    def count(keys: Sequence[str]) -> Sequence[str]:
        """Count the requests with these keys, and return the keys with a recorded response."""
        needed.append(_short_keys(keys))
        found = [] if target is None else list(run.engines.recorded(target, keys))
        if found:
            recorded.append(_short_keys(found))
            oldest.append(run.engines.oldest_of(found))
        return found

    def responses_to(prompts: Sequence[Prompt]) -> list[Response | None]:
        keys = _keys(prompts, target)
        found = count(keys)
        responses = {} if target is None or not found else run.store.get(found, run.engines.freshness(target))
        return [responses.get(key) for key in keys]

    def own_part(prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """Yield the prompts whose requests the run sends to this target."""
        for prompt in prompts:
            is_own = shard is None or shard.holds(_keys([prompt], target)[0])
            if is_own and (target is None or registry.can_answer(target, prompt.request)):
                yield prompt

    by_probe = _prompts(analyses)
    single = chain.from_iterable(prompts for probe, prompts in by_probe if not probe.follow_ups.are_turns)
    for some in chunks_of(own_part(single), BATCH):
        count(_keys(some, target))
    for probe, prompts in by_probe:
        for some in chunks_of(own_part(prompts), BATCH) if probe.follow_ups.are_turns else ():
            for _ in turns(probe, some, responses_to, lambda: STAND_IN):
                pass  # `responses_to` counts the requests
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
