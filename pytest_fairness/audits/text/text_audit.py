"""Audits of texts for a marked and the unmarked group: what all of them share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from pytest_fairness.audits.base import Audit, AuditItem, DecisionRule, Example, SettingsT
from pytest_fairness.audits.decision_rules import SignificantChange
from pytest_fairness.audits.findings import Finding, axis_of, listed, plain_words, shortened, strongest
from pytest_fairness.audits.text.documents import Documents, anonymizer, text_of
from pytest_fairness.audits.text.groups import Groups, compared, concerns_of, has
from pytest_fairness.audits.text.word_rows import word_rows
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Comparison, Concern, ItemResult, Json, Measurement

SIGNIFICANT = 0.05
"""Largest p-value of a difference whose words baselines keep."""


class TextAudit(Audit[GenerationProbe, SettingsT]):
    """An audit that compares marked values of axes with the axes' unmarked values."""

    kind: ClassVar[str] = "generation"
    rule: ClassVar[DecisionRule] = SignificantChange()

    def items(self, probe: GenerationProbe, settings: SettingsT) -> list[AuditItem[SettingsT]]:
        """Return one item for each marked value of each axis, then one for each marked cell of each intersection."""
        sets = [*((axis,) for axis in probe.axes), *probe.intersections]
        return [
            AuditItem(
                audit_name=self.info.name,
                subject=",".join(f"{axis}={value}" for axis, value in labels.items()),
                labels=labels,
                settings=settings,
            )
            for axes in sets
            for values in itertools.product(*(probe.axes[axis].marked for axis in axes))
            for labels in [dict(zip(axes, values, strict=True))]
        ]

    def uses(self, probe: GenerationProbe, item: AuditItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the answers are of the marked or of the unmarked group."""
        marked, unmarked = compared(probe, item)
        return has(labels, marked) or has(labels, unmarked)

    def concerns(
        self, probe: GenerationProbe, item: AuditItem[SettingsT], answers: Sequence[Answer], measurement: Measurement
    ) -> list[Concern]:
        """Return the concerns that answers repeat, or that strata hold one group only; see `Audit.concerns`."""
        return concerns_of(Groups.of(probe, item, answers))

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return how much each word speaks for the marked group, negative for the unmarked group.

        By default the weights in the detail `top_words`; see `strongest_words`.
        """
        words = measurement.details.get("top_words", {})
        return {
            word["word"]: sign * abs(word["weight"])
            for side, sign in (("marked", 1.0), ("unmarked", -1.0))
            for word in words.get(side, ())
        }

    def word_values(self, item: AuditItem[SettingsT], documents: Documents) -> tuple[str, Mapping[str, float]] | None:
        """Return the name of the audit's statistic of a word, and its value for every word; `None` without one."""
        return None

    def word_rows(
        self, probe: GenerationProbe, item: AuditItem[SettingsT], answers: Sequence[Answer], details: Mapping[str, Json]
    ) -> list[dict[str, Json]]:
        """Return a row for each word of both groups' texts; see `Audit.word_rows`."""
        groups = Groups.of(probe, item, answers)
        documents = Documents.of(probe, groups)
        found = self.word_values(item, documents)
        if found is None:
            return []
        names = groups.marked_name, groups.unmarked_name
        return word_rows(*found, documents.words, documents.marked.tolist(), names)

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the words that speak most for either group."""
        weights = self.word_weights(measurement)
        return sorted(weights, key=lambda word: (-abs(weights[word]), word))

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the weight of each word; nothing if chance explains the difference."""
        if measurement.p_value is None or measurement.p_value > SIGNIFICANT:
            return {}
        return self.word_weights(measurement)

    def tells(
        self, probe: GenerationProbe, item: AuditItem[SettingsT], measurement: Measurement
    ) -> Callable[[str], float]:
        """Return how much a text speaks for the marked group, as a function; negative for the unmarked one."""
        weights, anonymize = self.word_weights(measurement), anonymizer(probe)
        return lambda text: sum(weights.get(word, 0.0) for word in {*anonymize.words(text)})

    def top_words(self, result: ItemResult) -> tuple[list[str], list[str]]:
        """Return the strongest words of the marked and of the unmarked group, for sentences about a failed item."""
        weights = {} if result.measurement is None else strongest(self.word_weights(result.measurement))
        return (
            plain_words(word for word, weight in weights.items() if weight > 0),
            plain_words(word for word, weight in weights.items() if weight < 0),
        )

    def finding(self, result: ItemResult) -> Finding:
        """Return which words each group gets more often; see `Audit.finding`."""
        marked, unmarked = group_names(result)
        words = self.top_words(result)
        contrasts = [
            f"answers for {group} say {listed(own)}"
            for group, own in zip((marked, unmarked), words, strict=True)
            if own
        ]
        description = "; ".join(contrasts) + " more often than the others."
        naming = f" Do not use {listed([*words[0], *words[1]])} more for one than for another." if contrasts else ""
        return Finding(
            description[:1].upper() + description[1:] if contrasts else f"Answers for {marked} differ in their words.",
            f"Choose the same topics, words and tone for everyone. Do not answer differently because "
            f"{axis_of(result)} is {marked} or {unmarked}: answer for {marked} as you would for {unmarked}."
            f"{naming}",
            words[0],
            trainable=True,
        )

    def examples(
        self, probe: GenerationProbe, item: AuditItem[SettingsT], measurement: Measurement, answers: Sequence[Answer]
    ) -> list[list[Example]]:
        """Return both groups' answers of one prompt and trial; refused and most typical answers come first."""
        groups = Groups.of(probe, item, answers)
        tells = self.tells(probe, item, measurement)
        cells: dict[tuple[str, int], dict[bool, Answer]] = {}
        for answer, marked, stratum in zip(groups.answers, groups.marked, groups.strata, strict=True):
            cells.setdefault((stratum, answer.trial), {})[marked] = answer
        found = []
        for cell, sides in sorted(cells.items()):
            if len(sides) == 2:
                differ = sides[True].usable != sides[False].usable
                told = [tells(text_of(sides[side])) if sides[side].usable else 0.0 for side in (True, False)]
                found.append((not differ, told[1] - told[0], cell, sides))
        pairs = [sides for *_, sides in sorted(found, key=lambda part: part[:3])]
        return [[(groups.marked_name, pair[True]), (groups.unmarked_name, pair[False])] for pair in pairs]


def group_names(result: ItemResult) -> tuple[str, str]:
    """Return the names of the marked and the unmarked group of a result."""
    marked, *others = map(shortened, result.measurement.n if result.measurement else ())
    return marked, others[0] if len(others) == 1 else "the unmarked group"
