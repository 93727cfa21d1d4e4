"""One audit item of a probe: what it asks, what it reads, and what was measured of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from pytest_fairness.answers import judge_votes, reading
from pytest_fairness.audits import answer_checks, registry
from pytest_fairness.audits.base import BETA, Audit, AuditItem
from pytest_fairness.baselines import files
from pytest_fairness.baselines.answers import Row
from pytest_fairness.errors import FairnessError, ModelError, RequestFailed
from pytest_fairness.probes import Probe, growth
from pytest_fairness.probes.growth import Stage
from pytest_fairness.records import Answer, Comparison, Json, Judged, Measurement, Prompt, Request, Response, Status
from pytest_fairness.scorers import registry as scorers
from pytest_fairness.scorers.registry import Scorer
from pytest_fairness.stats import sequential

EVERYTHING = Stage()

NOT_MEASURED = {"audits", "description", "intersections", "marks", "variants", "compare_sampling"}
"""Keys of a probe that no measurement depends on."""

_encode = json.JSONEncoder(sort_keys=True).encode

MAX_ALPHA = 0.01
"""One-sided level of a test where the probe's `alpha` leaves more."""


@dataclass(frozen=True)
class ProbeItem:
    """One audit item together with the probe and the method that it is made of.

    Attributes:
        trials: overrides the probe's own number.
        stage: how much of what may be asked is asked; everything, if it does not say.
    """

    probe: Probe
    audit: Audit[Any]
    item: AuditItem[Any]
    trials: int | None = None
    stage: Stage = EVERYTHING

    @property
    def id(self) -> str:
        """`svm[race=Black]`, and `svm[race=Black]@small` of a target that has a name."""
        return self.item.id

    @property
    def target(self) -> str | None:
        """The name of the one of several targets that is asked; `None` where targets have no names."""
        return self.item.target

    @property
    def baseline(self) -> str:
        """The name of the baseline that it is an item of."""
        return self.probe.name if self.target is None else f"{self.probe.name}@{self.target}"

    def of(self, target: str | None) -> ProbeItem:
        """The same item, asked of the target of this name; as it is for `None`. Its resampling stays the same."""
        return replace(self, item=replace(self.item, target=target))

    @property
    def asks(self) -> bool:
        """Whether a model is asked; else the probe brings its answers along."""
        return self.probe.responses is None

    def questions(self) -> Iterator[Prompt]:
        """What is to be asked for this item; made one after the other, as there may be very many."""
        return (prompt for prompt in self.probe.prompts(self.draws) if self.uses(prompt.labels))

    @property
    def prompts(self) -> list[Prompt]:
        """All that is to be asked for this item."""
        return list(self.questions())

    @property
    def draws(self) -> int:
        """How often each question is asked."""
        return int(self.probe.draws(self.trials if self.stage.trials is None else self.stage.trials))

    @cached_property
    def looks(self) -> list[ProbeItem]:
        """The item at each interim analysis, with more answers each time, until there is a verdict.

        The looks share the item's alpha, and the chance that it passes although it is worse by twice the tolerance, by
        a spending function: all looks together err no more often than a single one; see `stats.sequential`.
        """
        if not self.asks:
            return [self]
        stages = self.probe.stages()
        if self.item.settings.gate == "point":
            stages = stages[-1:]  # bare estimates err as often as they are looked at
        if self.trials is not None:
            stages = list(dict.fromkeys(replace(stage, trials=None) for stage in stages))
        shares = growth.shares(stages)
        alphas, betas = (sequential.levels(shares, total) for total in (self.item.alpha, self.item.beta))
        return [
            replace(self, item=self.item.at_look(alpha, beta, last=stage is stages[-1]), stage=stage)
            for stage, alpha, beta in zip(stages, alphas, betas, strict=True)
        ]

    @property
    def whole(self) -> ProbeItem:
        """Return the item as its baseline is measured: at its last look, whichever look this is."""
        item = replace(self.item, alpha=self.item.planned_alpha, beta=BETA, total_alpha=None)
        return replace(self, item=item, stage=EVERYTHING).looks[-1]

    @property
    def measured_by(self) -> Mapping[str, float]:
        """Return what a value depends on besides the answers and the shape: version and level of the audit."""
        return {"version": self.audit.version, "level": self.item.alpha}

    @property
    def requests(self) -> Iterator[Request]:
        """What is sent for it as far as is known; nothing where that cannot be said, which its set-up tells."""
        with suppress(FairnessError):
            for prompt in self.questions():
                yield prompt.request

    @property
    def shape(self) -> Mapping[str, str]:
        """Everything that shapes the item's prompts and their reading, by readable name."""
        model = {} if self.classifier is None else {"model": self.classifier.identity}
        return {**self.probe.fingerprint(self.item.labels), **self.audit.shape(self.probe, self.item), **model}

    @cached_property
    def classifier(self) -> Scorer | None:
        """The model that scores the item's answers, if one does; nothing is loaded until it has to."""
        found = self.audit.classifier(self.item.settings)
        return None if found is None else scorers.open_scorer(found[0], found[1], self.probe.path.parent)

    @property
    def embedder(self) -> str | None:
        """The model that embeds the item's answers, as the probe names it, if one does."""
        return self.audit.embedder(self.item.settings)

    def require(self) -> None:
        """Have everything at hand that measuring takes besides answers.

        Raises:
            ModelError: the model that scores answers, or a package that it needs, is not there.
        """
        wanted = self.audit.classifier(self.item.settings)
        if self.classifier is not None and wanted is not None:
            scorers.require(self.classifier, wanted[1])

    @property
    def measurable(self) -> bool:
        """Whether everything is at hand that measuring takes; if not, nothing need be asked."""
        try:
            self.require()
        except ModelError:
            return False
        return True

    def uses(self, labels: Mapping[str, str]) -> bool:
        """Whether answers with these labels are the item's, at its stage."""
        return self.audit.uses(self.probe, self.item, labels) and self.probe.within(self.stage, labels)

    def stands_on_answers_of(self, other: ProbeItem) -> bool:
        """Whether the same questions are asked for another item, so that its answers need not be read again."""
        if self.probe is not other.probe or (self.draws, self.stage) != (other.draws, other.stage):
            return False
        return all(self.uses(prompt.labels) == other.uses(prompt.labels) for prompt in self.probe.prompts(self.draws))

    def follow_ups(self, answers: Sequence[Answer]) -> list[Prompt]:
        """What is to be asked next, now that these answers are there."""
        return self.probe.follow_ups(answers)

    def read(self, row: Row) -> Answer:
        """A baseline's answer, read as one of today's is."""
        request = Request("", answer_format=self.probe.format_of(row.labels))
        prompt = Prompt(request, row.labels, row.trial, self.probe.choices)
        reason = "refusal" if row.refused else None
        answer = reading.answer(prompt, None if row.text is None else Response(row.text, finish_reason=reason))
        return answer if row.judged is None else judge_votes.decided(answer, Judged.from_json(row.judged))

    def row(self, answer: Answer) -> Row:
        """An answer as baselines keep it."""
        row = Row(dict(answer.labels), answer.trial, answer.text, answer.judged.to_json() if answer.judged else None)
        # A usable text is read alike without its finish reason, which the row does not hold.
        if answer.status is Status.OK or self.read(row).status is answer.status:
            return row
        # The target may have said that it refused, which its text does not show.
        refused = answer.status is Status.REFUSED
        return replace(row, text=answer.text if refused else None, judged=None, refused=refused)


def items_of(probe: Probe, trials: int | None = None) -> list[ProbeItem]:
    """Every audit item of a probe, in its own order, each tested at its share of the probe's `alpha`."""
    found = [
        (audit, item)
        for audit, settings in ((registry.get(probe.kind, name), given) for name, given in probe.audits.items())
        for item in audit.items(probe, settings)
    ]
    alpha = min(MAX_ALPHA, probe.alpha / max(1, len(found)))
    return [
        ProbeItem(probe, audit, replace(item, alpha=alpha, seed=f"{probe.name}/{item.id}"), trials)
        for audit, item in found
    ]


@dataclass(frozen=True)
class Measured:
    """What one item measured, of whom, and from which answers."""

    part: ProbeItem
    target: str
    answers: Sequence[Answer]
    measurement: Measurement

    @property
    def id(self) -> str:
        """The item's id, as in pytest: `svm[race=Black]`."""
        return self.part.id

    @property
    def labels(self) -> Mapping[str, str]:
        """What the item is about: `{"race": "Black"}`."""
        return self.part.item.labels

    @cached_property
    def served(self) -> list[str]:
        """Return the models that the server says it answered with, sorted; empty where it does not say."""
        return sorted({answer.served for answer in self.answers if answer.served is not None})

    @cached_property
    def about(self) -> Sequence[Answer]:
        """Return the answers that the value is about; see `Audit.about`."""
        return self.part.audit.about(self.part.probe, self.part.item, self.answers)

    @property
    def value(self) -> float:
        """The measured value, in the audit's unit."""
        return self.measurement.value

    def rows(self) -> Iterator[Row]:
        """The answers as baselines keep them; made one after the other, as there may be very many."""
        return map(self.part.row, self.answers)


@dataclass(frozen=True)
class Before:
    """An item's baseline, its answers, and how far the item has moved from it; all empty where there is none.

    Attributes:
        note: what the verdict says of the baseline besides.
        new: whether this very run becomes the baseline.
    """

    entry: files.Entry | None = None
    stale: Sequence[str] = ()
    comparison: Comparison | None = None
    answers: Sequence[Answer] = ()
    note: str | None = None
    new: bool = False


def read_all(prompts: Sequence[Prompt], responses: Sequence[Response | FairnessError]) -> list[Answer]:
    """Responses as answers. One that failed on its own is a missing answer; what concerns all of them is an error.

    Raises:
        FairnessError: see above.
    """
    for response in responses:
        if isinstance(response, FairnessError) and not isinstance(response, RequestFailed):
            raise response
    return [
        replace(reading.answer(prompt, None), error=str(response))
        if isinstance(response, FairnessError)
        else reading.answer(prompt, response)
        for prompt, response in zip(prompts, responses, strict=True)
    ]


def key_of(what: str, part: ProbeItem, *answers: Sequence[Answer], embedder: str | None = None) -> str:
    """Names a measurement by everything that it is made from, and by nothing else.

    Args:
        what: is measured.
        part: the item.
        answers: of one run or two.
        embedder: identity of the model that embeds the answers, if one does.
    """
    probe = part.probe.model_dump(mode="json", by_alias=True, exclude=NOT_MEASURED)
    item = part.item
    made_of = [
        [what, part.audit.kind, part.audit.info.name, part.audit.version, answer_checks.VERSION],
        [item.id, item.alpha, item.total_alpha, item.seed],
        item.settings.model_dump(mode="json", exclude={"skip", "xfail"}),
        probe,
        [[digest(run), _how_they_ended(run)] for run in answers],
        *([part.classifier.identity] if part.classifier else []),
        *([embedder] if embedder else []),
    ]
    return sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def _how_they_ended(answers: Sequence[Answer]) -> list[Json]:
    """Return what the checks of answers need besides the texts: how many were cut off, and why requests failed."""
    errors = Counter(answer.error for answer in answers if answer.error is not None)
    return [sum(answer.truncated for answer in answers), sorted(errors.items())]


def digest(answers: Iterable[Answer]) -> str:
    """Names the answers, whatever their order: equal where they are."""
    total = 0
    for answer in answers:
        judged = (answer.judged.to_json(),) if answer.judged else ()
        line = _encode([dict(answer.labels), answer.trial, answer.status, answer.text, *judged])
        # A sum does not depend on the order, and sorting would take room for all the lines.
        total += int.from_bytes(sha256(line.encode()).digest(), "big")
    return f"{total:x}"
