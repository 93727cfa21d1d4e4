"""Targets and engines of a run: systems under test, and models that judge, score or embed answers."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import cast

from pytest_fairness.answers import reading
from pytest_fairness.asking import batches
from pytest_fairness.asking.batches import BatchSender
from pytest_fairness.asking.claims import Freshness, RunId
from pytest_fairness.asking.database import this_process
from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.limits import DEFAULT_TIMING
from pytest_fairness.asking.store import Store, response_key
from pytest_fairness.asking.tracker import RequestCounts
from pytest_fairness.backends import chunks_of
from pytest_fairness.errors import AnswersMissing, FairnessError, ProbeError, RequestFailed, StoreError, TargetError
from pytest_fairness.languages import Language
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.records import Answer, Json, Judged, Judging, Request, Response, Status
from pytest_fairness.resources import Closing
from pytest_fairness.run.items import ProbeItem
from pytest_fairness.scorers import Scorer, scores_of
from pytest_fairness.targets import base, open_target, registry
from pytest_fairness.targets.base import BatchTarget, Target
from pytest_fairness.targets.python import Application, CallableTarget

# Engines of a run, one for each target, and the store that they share.

KEYS_AT_ONCE = 4_000
"""Maximum number of requests' keys that are looked up in one query."""


class Engines(Closing):
    """Engines of one process of a run, one for each target."""

    def __init__(self, settings: RunSettings, run: RunId, started: float) -> None:
        self._settings, self._run, self._started = settings, run, started
        self._owner = uuid.uuid4().hex
        self._engines: dict[int, tuple[Target, Engine]] = {}

    @cached_property
    def store(self) -> Store:
        """Return the store of recorded responses; the first call opens the store."""
        return Store(self._settings.store)

    def engine(self, target: Target) -> Engine:
        """Return the engine of this target; the first call creates the engine."""
        if id(target) not in self._engines:
            oldest = self.freshness(target).oldest
            engine = Engine(self.store, target, self._settings, oldest=oldest, owner=self._owner, run=self._run)
            self._engines[id(target)] = target, engine
        return self._engines[id(target)][1]

    def freshness(self, target: Target) -> Freshness:
        """Return the rule that decides which recorded responses of a target are reused; all processes share it."""
        settings = self._settings
        oldest = self._started - settings.max_age_hours * 3600
        if settings.replay or (getattr(target, "lasting", False) and not settings.fresh):
            oldest = -math.inf
        elif settings.fresh or not target.reusable:
            oldest = math.inf
        return Freshness(self._run.name, oldest)

    def recorded(self, target: Target, keys: Sequence[str]) -> set[str]:
        """Return the keys of requests whose recorded response this run reuses; do not create a missing store."""
        return self.store.recorded(keys, self.freshness(target)) if self._settings.store.exists() else set()

    def oldest_of(self, keys: Iterable[str]) -> float | None:
        """Return the date of the oldest recorded response to the requests with these keys, in seconds since the epoch.

        The result is `None` if there is no response.
        """
        if not self._settings.store.exists():
            return None
        found = [self.store.oldest_of(some) for some in chunks_of(keys, KEYS_AT_ONCE)]
        return min((created for created in found if created is not None), default=None)

    @property
    def reuse_needs_replay(self) -> bool:
        """Return whether a later run needs `--fairness-replay` to reuse the answers of this process."""
        targets = [target for target, _ in self._engines.values() if not getattr(target, "lasting", False)]
        # `addopts` may contain --fairness-fresh, so that it holds for the later run too.
        return self._settings.replay or self._settings.fresh or not all(target.reusable for target in targets)

    def plan(self, target: Target, requests: Iterable[Request]) -> None:
        """Send the requests in the background, in this order; see `Engine.plan`.

        Requests of other shards, and requests that the target cannot answer, are left out.
        """
        answerable = (request for request in requests if registry.can_answer(target, request))
        self.engine(target).plan(self.own_part(target, answerable))

    def own_part(self, target: Target, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield the requests that this run sends: all requests, or only the requests of the run's shard."""
        shard = self._settings.shard
        return (each for each in requests if shard is None or shard.holds(response_key(target.identity, each)))

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        registry.require_support(target, requests)
        return self.engine(target).answers(requests)

    async def send_in_batches(
        self, target: Target, requests: Iterable[Request], show_line: Callable[[str], None]
    ) -> None:
        target.check()
        self.engine(target)  # an engine finds only failures that are recorded after its creation
        sender = BatchSender(
            self.store,
            target,
            cast("BatchTarget", target).batch_client(),
            self._settings,
            fresh=self.freshness(target),
            run=self._run,
            owner=f"{self._owner}/batches of {target.identity}",
            timing=batches.DEFAULT_BATCH_TIMING,
            show_line=show_line,
        )
        await sender.send(self.own_part(target, requests))

    def counts_by_owner(self) -> dict[str, RequestCounts]:
        """Return the request counts of each engine of the run, of all processes; empty without a readable store."""
        if self._settings.store.exists():
            with suppress(FairnessError):  # the items that need the store have reported the error
                return self.store.runs.request_counts(self._run)
        return {}

    def newly_planned(self) -> dict[str, bool]:
        """Return the requests planned since the last call: for each key, whether an answer was already recorded."""
        found: dict[str, bool] = {}
        for _, engine in self._engines.values():
            for key, recorded in engine.newly_planned().items():
                found[key] = recorded and found.get(key, True)
        return found

    def stop(self, grace: float = DEFAULT_TIMING.stop_grace) -> None:
        """Stop sending requests from this process."""
        for _, engine in self._engines.values():
            engine.stop(grace)

    def stop_all(self) -> None:
        if self._settings.store.exists():
            self.store.runs.stop(self._run)
        self.stop()

    def close(self) -> None:
        """Stop sending and close the store. If this process started the run, all processes of the run stop sending."""
        self.stop()
        if self._engines and self._run.process == this_process():
            with suppress(StoreError):  # the items that need the store have reported the error
                self.store.runs.stop(self._run)
        if "store" in self.__dict__:
            self.store.close()


# Targets of a run: systems under test, judge model and embedding models.


class Targets:
    """Targets of a run; each target object is created at its first use, and no request is sent."""

    def __init__(self, settings: RunSettings, addresses: Mapping[str, str]) -> None:
        self._settings = settings
        self._addresses = addresses
        self._opened: dict[str, Target] = {}
        self._embedders: dict[tuple[str, Path], Target] = {}

    def named(self, name: str | None = None) -> Target:
        """Return the target of the settings or, if the settings name several targets, the target with this name.

        Two names of the same target share one target object.
        """
        spec = self._settings.target if name is None else self._settings.targets[name]
        if spec not in self._opened:
            self._opened[spec] = self._open(spec)
        return self._opened[spec]

    def from_value(self, value: object, name: str) -> Target:
        """Return the target that a value stands for: the name of a target, a callable, or a target."""
        if isinstance(value, str):
            return self._open(value)
        if hasattr(value, "ask") and hasattr(value, "identity"):
            return cast("Target", value)
        return CallableTarget(cast("Application", value), name, version=self._settings.target_version)

    @property
    def description(self) -> str:
        named = [f"{name}={self.named(name).name}" for name in self._settings.targets]
        return ", ".join(named) or self.named().name

    @cached_property
    def judge(self) -> Target | None:
        """Return the judge model that the settings name, or `None`."""
        return open_judge(self._settings, self._addresses)

    def require_judge(self, probe: Probe) -> None:
        """Raise `ProbeError` if the probe needs a judge model, but the settings name no judge model."""
        if probe.reading.judge_votes and self._settings.judge is None:
            wanted = "`answer: {judge: true}`" if probe.reading.judging else "`refusals: {by: judge}`"
            raise ProbeError(
                f"{display_path(probe.source.path, probe.source.root)}: a judge model must read the answers "
                f"({wanted}), but none is set. Set `fairness_judge` in the ini file, such as "
                "`fairness_judge = openai:MODEL`."
            )

    def embedder(self, item: ProbeItem) -> Target | None:
        """Return the embedding model for the answers of an item; `None` if the item's audit has no embedding model."""
        name = item.models.embedder
        if name is None:
            return None
        folder = item.probe.source.path.parent
        if (name, folder) not in self._embedders:
            self._embedders[name, folder] = registry.open_embedder(name, self._settings, folder)
        return self._embedders[name, folder]

    def _open(self, spec: str) -> Target:
        return open_target(spec, self._settings, self._addresses.get(spec.strip()))


# Judge model, which classifies free-text answers: the target that serves it, and its votes on answers.


def open_judge(settings: RunSettings, addresses: Mapping[str, str] | None = None) -> Target | None:
    """Return the judge model that the settings name, or `None`; no request is sent."""
    judge = settings.judge
    if judge is None:
        return None
    # `target_version` is not the version of the judge model: a new version of the target does not make votes obsolete.
    settings = replace(settings, target_version=None)
    try:
        return open_target(judge, settings, (addresses or {}).get(judge))
    except TargetError as error:
        raise TargetError(str(error).replace("--fairness-target", "fairness_judge")) from error


def judged(
    answers: Sequence[Answer], judging: Judging, language: Language, judge: Target, engines: Engines
) -> list[Answer]:
    """Return the answers with the majority choice of the judge model's votes; request votes that are not recorded."""
    texts = [answer.text or "" for answer in answers if reading.needs_votes(answer)]
    found = iter(votes_on(texts, judging, judge, engines))
    return [
        reading.with_majority_choice(answer, next(found), language) if reading.needs_votes(answer) else answer
        for answer in answers
    ]


def votes_on(texts: Sequence[str], judging: Judging, judge: Target, engines: Engines) -> list[Judged]:
    """Return the judge model's votes on each text; the vote of a failed request is `None`.

    Raises:
        FairnessError: no vote is available, because no response is recorded for a replay, the run gave up on the judge
            model, or every request failed.
    """
    asked = reading.vote_requests(judging, texts)
    responses = engines.ask(judge, [request for requests in asked for request in requests])
    errors = [response for response in responses if isinstance(response, FairnessError)]
    for error in errors:
        if not isinstance(error, RequestFailed) or len(errors) == len(responses):
            raise AnswersMissing(f"the judge model {judge.name} (fairness_judge) did not answer: {error}") from error
    votes = iter([reading.vote(judging, None if isinstance(each, FairnessError) else each) for each in responses])
    return [Judged(judge.name, tuple(next(votes) for _ in requests)) for requests in asked]


# Scores of answers by a scorer, for audits that measure scores.

BATCH = 512
"""Number of texts that a scorer gets at a time; their scores are stored before the next texts are scored."""


def scored(item: ProbeItem, answers: Sequence[Answer], store: Store | None) -> Sequence[Answer]:
    """Return the answers with their scores as `content`; unchanged if the item's audit has no scorer.

    An answer whose text cannot be scored becomes unreadable, with the reason as its `error`. The content of an answer
    without a text to score is `None`.

    Raises:
        ModelError: the scorer cannot be used.
    """
    found, preparation = item.models.scorer, item.models.preparation
    if found is None or preparation is None:
        return answers
    scorer, label = found
    texts = item.models.texts(answers)
    needed = scorer.labels if preparation.gives == "labels" else (label,)
    scores = scores_by_text(
        scorer, {text for text in texts if text is not None}, needed, store if scorer.cached else None
    )

    def with_score(answer: Answer, text: str | None) -> Answer:
        if text is None:
            return replace(answer, content=None)
        own = scores[text]
        if isinstance(own, str):
            return replace(answer, status=Status.UNREADABLE, content=None, error=f"{preparation.model} {own}")
        given = {"scores": own} if preparation.gives == "labels" else {"score": own[label]}
        return replace(answer, content={"model": scorer.identity, **given})

    return [with_score(answer, text) for answer, text in zip(answers, texts, strict=True)]


def _scores_from(kept: Json) -> dict[str, float]:
    return {str(label): float(number) for label, number in kept.items()}


def scores_by_text(
    scorer: Scorer, texts: Set[str], needed: Sequence[str], store: Store | None
) -> dict[str, dict[str, float] | str]:
    """Return the scores of each text by label; for a text that lacks one of the `needed` scores, return a message.

    Scores that are not in the store are computed and added to the store. A failure is not stored, so that the text is
    scored again in the next run.
    """
    keys = {text: sha256(json.dumps(["scores", scorer.identity, text]).encode()).hexdigest() for text in texts}
    kept = {text: store.cache.get(key, _scores_from) if store else None for text, key in keys.items()}
    scores: dict[str, dict[str, float] | str] = {
        text: own for text, own in kept.items() if own and own.keys() >= {*needed}
    }
    new = sorted(texts - scores.keys())
    for start in range(0, len(new), BATCH):
        part = new[start : start + BATCH]
        for text, own in zip(part, scores_of(scorer, part, needed), strict=True):
            scores[text] = own
            if store and not isinstance(own, str):
                store.cache.put(keys[text], own)
    return scores


# Embeddings of the texts of answers, for audits that compare embeddings.

TEXTS_AT_ONCE = 1_000
"""Maximum number of responses with embeddings that are in memory at a time; a response is larger than its vector."""


def embedded(item: ProbeItem, answers: Sequence[Answer], embedder: Target, engines: Engines) -> list[Answer]:
    """Return the answers with embeddings for the item's audit; request missing embeddings and wait for them.

    Equal texts are embedded once, and recorded embeddings are not requested again.

    Raises:
        AnswersMissing: the embedding model gave no embedding for a text.
    """
    texts = item.models.texts(answers)
    different = list(dict.fromkeys(text for text in texts if text is not None))
    vectors: dict[str, bytes] = {}
    errors: list[str] = []
    for start in range(0, len(different), TEXTS_AT_ONCE):
        batch = different[start : start + TEXTS_AT_ONCE]
        responses = engines.ask(embedder, [Request(text, answer_format="embedding") for text in batch])
        for text, response in zip(batch, responses, strict=True):
            if isinstance(response, FairnessError):
                errors.append(str(response))
                continue
            try:
                vectors[text] = base.embedding_vector(response.text)
            except ValueError as error:
                errors.append(f"{embedder.name}: {error}.")
    if errors:
        raise AnswersMissing(
            f"{len(errors)} of {len(different)} texts have no embedding by {embedder.name} (`embeddings` of "
            f"{item.id}); the first error: {errors[0].removesuffix('.')}. The other embeddings are recorded, and are "
            "not requested again."
        )
    return [
        answer if text is None else replace(answer, embedding=vectors[text])
        for answer, text in zip(answers, texts, strict=True)
    ]
