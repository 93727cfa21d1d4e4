"""Audit items of a probe, with all that is needed to request and measure their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeVar

from pytest_fairness.audits import registry
from pytest_fairness.audits.base import BETA, AnyAudit, AnyItem, AuditItem
from pytest_fairness.audits.decision_rules import rule_of
from pytest_fairness.baselines.answer_sets import Row
from pytest_fairness.errors import FairnessError
from pytest_fairness.languages.language import ENGLISH
from pytest_fairness.probes import Probe
from pytest_fairness.probes.checks import canonical
from pytest_fairness.probes.keys import interim_stages
from pytest_fairness.probes.keys.interim_stages import Stage
from pytest_fairness.records import Answer, Prompt, Request
from pytest_fairness.run.items.item_models import ItemModels
from pytest_fairness.stats import interim_analyses

LabelledT = TypeVar("LabelledT", Prompt, Answer, Row)

FINAL_STAGE = Stage()
"""Stage of an item at its final analysis, when all prompts have been sent."""

MAX_ALPHA = 0.01
"""Maximum one-sided significance level of an item, even if few items share the probe's `alpha`."""


KEPT_BY_PROMPT = 2_000
"""Maximum number of answers to single prompts of a probe that are kept for its next item; they may be long."""
KEPT_PROMPTS = 20_000
"""Maximum number of prompts of a probe that are kept for its next item; there may be millions. The prompts of an axis
of 1,000 values must fit: each of its items would otherwise make the prompts of all items anew."""
ALL_KEPT_PROMPTS = 20_000
"""Maximum number of prompts of all probes that are kept, because a run goes through all probes several times: to count
the requests, to plan them, and to measure the answers."""


class RecentPrompts:
    """Prompts of the probes that were used last; all items of a probe select their prompts from these prompts."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], tuple[Probe, list[Prompt], list[Mapping[str, str]]]] = {}
        self._number = 0

    def prompts_of(self, probe: Probe, trials: int) -> Iterable[Prompt]:
        """Return all prompts of a probe, with this number of trials each.

        Raises:
            FairnessError: the prompts cannot be made.
        """
        if (id(probe), trials) in self._kept:
            return self._kept[id(probe), trials][1]
        rest = iter(probe.prompts(trials))
        first = list(islice(rest, KEPT_PROMPTS + 1))
        if len(first) > KEPT_PROMPTS:
            return chain(first, rest)
        if self._number + len(first) > ALL_KEPT_PROMPTS:
            self.forget()
        # All trials of a prompt share one object with the labels.
        labels = [next(group) for _, group in groupby((prompt.labels for prompt in first), key=id)]
        self._kept[id(probe), trials] = probe, first, labels
        self._number += len(first)
        return first

    def labels_of(self, probe: Probe, trials: int) -> Sequence[Mapping[str, str]] | None:
        """Return the different labels of a probe's prompts, in their order; `None` if there are too many prompts.

        Raises:
            FairnessError: the prompts cannot be made.
        """
        self.prompts_of(probe, trials)
        kept = self._kept.get((id(probe), trials))
        return None if kept is None else kept[2]

    def forget(self) -> None:
        """Free the prompts in memory."""
        self._kept.clear()
        self._number = 0


RECENT = RecentPrompts()


@dataclass(frozen=True, kw_only=True)
class ProbeItem(AuditItem[Probe, Any]):
    """Audit item of a probe, with its audit and the stage at which it is measured.

    Attributes:
        trials: number of trials that overrides the probe's own number, or `None`.
        stage: numbers of trials and entities at this interim analysis; by default all.
        test_file: the file of the Python test that checks the item; `None` for an item of a probe file.
    """

    audit: AnyAudit
    trials: int | None = None
    stage: Stage = FINAL_STAGE
    test_file: Path | None = None

    @classmethod
    def made_of(cls, item: AnyItem, audit: AnyAudit, trials: int | None = None, **changes: Any) -> ProbeItem:
        """Return a probe item with the attributes of `item`, and with this audit and number of trials.

        Some of the attributes are replaced by `changes`.
        """
        inherited = {field.name: getattr(item, field.name) for field in fields(AuditItem)}
        return cls(**{**inherited, **changes}, audit=audit, trials=trials)

    @property
    def baseline_name(self) -> str:
        """Return the name of the item's baseline: `PROBE`, or `PROBE@TARGET` for one of several targets."""
        return self.probe.name if self.target is None else f"{self.probe.name}@{self.target}"

    @property
    def file(self) -> Path:
        """Return the probe file, or the file of the Python test."""
        return self.test_file or self.probe.source.path

    @property
    def asks(self) -> bool:
        """Return whether requests are sent; if not, the answers are in the probe's `responses:` file."""
        return self.probe.responses is None

    @property
    def trial_count(self) -> int:
        """Return the number of trials of each prompt."""
        return interim_stages.max_trials(
            self.probe.trials, self.trials if self.stage.trials is None else self.stage.trials
        )

    def prompts(self) -> Iterator[Prompt]:
        """Yield the prompts of the item one by one, because there may be millions."""
        return self.select_own(RECENT.prompts_of(self.probe, self.trial_count))

    def select_own(self, labelled: Iterable[LabelledT]) -> Iterator[LabelledT]:
        """Yield the prompts (or answers, or rows of a baseline) that the item uses."""
        return selected(labelled, self.uses)

    def requests(self) -> Iterator[Request]:
        """Yield the requests of the item; end at an error in its prompts, which the item's set-up reports."""
        with suppress(FairnessError):
            for prompt in self.prompts():
                yield prompt.request

    @cached_property
    def analyses(self) -> list[ProbeItem]:
        """Return one item for each interim analysis and, last, an item for the final analysis of all answers.

        A spending function divides alpha and beta (1 minus the power) among the analyses, so that all analyses together
        have the error rates of a single analysis; see `stats.interim_analyses`.
        """
        if not self.asks:
            return [self]
        stages = self.probe.stages()
        if not rule_of(self.audit, self).tested:
            stages = stages[-1:]  # without a test, there are no error rates to divide
        if self.trials is not None:
            stages = list(dict.fromkeys(replace(stage, trials=None) for stage in stages))
        shares = interim_stages.information_fractions(stages)
        alphas, betas = (interim_analyses.alphas(shares, total) for total in (self.alpha, self.beta))
        return [
            replace(
                self, alpha=alpha, beta=beta, total_alpha=self.alpha, final_analysis=stage is stages[-1], stage=stage
            )
            for stage, alpha, beta in zip(stages, alphas, betas, strict=True)
        ]

    @property
    def for_baseline(self) -> ProbeItem:
        """Return the item at its final analysis, as it is measured for a baseline."""
        undivided = replace(self, alpha=self.planned_alpha, beta=BETA, total_alpha=None, stage=FINAL_STAGE)
        return undivided.analyses[-1]

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """Return, by name, all inputs that determine the item's prompts and the parsing of its answers."""
        codes = self.probe.language.codes
        language = {} if codes == ENGLISH.codes else {"language": ", ".join(codes)}
        marks = self.probe.answer.thoughts
        return {
            **self.probe.fingerprint(self.labels),
            **language,
            **({"thoughts": canonical(marks)} if marks else {}),
            **self.audit.fingerprint(self),
            **self.models.fingerprint,
        }

    @cached_property
    def models(self) -> ItemModels:
        """Return the models that read the item's answers before the measurement; see `Audit.preparation`."""
        return ItemModels(self.audit.preparation(self), self.probe)

    def uses(self, labels: Mapping[str, str]) -> bool:
        """Return whether the item measures answers with these labels at its current stage."""
        return self.audit.uses(self, labels) and self.stage.includes(labels)


def selected(labelled: Iterable[LabelledT], uses: Callable[[Mapping[str, str]], bool]) -> Iterator[LabelledT]:
    """Yield the prompts (or answers, or rows of a baseline) with labels for which the function `uses` returns true."""
    last: Mapping[str, str] | None = None
    used = False
    for each in labelled:
        # All trials of a prompt share one object with the labels, so the labels are compared once.
        if each.labels is not last:
            last, used = each.labels, uses(each.labels)
        if used:
            yield each


def items_of(probe: Probe, trials: int | None = None) -> list[ProbeItem]:
    """Return all audit items of a probe, in the probe's order, each with its share of the probe's `alpha`."""
    found = [
        (item, audit)
        for audit, settings in ((registry.get(probe.kind, name), given) for name, given in probe.audits.items())
        for item in audit.items(probe, settings)
    ]
    alpha = min(MAX_ALPHA, probe.alpha / max(1, len(found)))
    return [ProbeItem.made_of(item, audit, trials, alpha=alpha, seed=item.id) for item, audit in found]
