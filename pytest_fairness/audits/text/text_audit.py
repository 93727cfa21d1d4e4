"""Base classes of the audits that compare texts about a marked and the unmarked group."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.base import Audit, AuditItem, DecisionRule, Example, SettingsT
from pytest_fairness.audits.decision_rules import SignificantChange
from pytest_fairness.audits.findings import Finding, axis_of, listed, plain_words, shortened, strongest
from pytest_fairness.audits.text.concerns import repeated_or_one_sided
from pytest_fairness.audits.text.documents import anonymizer, text_of
from pytest_fairness.audits.text.groups import Groups, TextItem, require_common_strata
from pytest_fairness.audits.text.words.languages import language_of
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Answers, Comparison, Concern, ItemResult, Json, Measurement
from pytest_fairness.stats.resampling import randomness

SIGNIFICANT = 0.05
"""A baseline stores the words of an item only if the p-value of the groups' difference is at most this number."""

MOST_OF_THE_WEIGHT = 0.5
"""If function words have more than this share of the sum of all words' weights, they are named together, as the first
contributor."""
NAMED_FUNCTION_WORDS = 3


class TextAudit(Audit[GenerationProbe, SettingsT]):
    """Base class of audits that compare texts about a marked value of an axis with texts about its unmarked value."""

    kind = "generation"
    rule: ClassVar[DecisionRule] = SignificantChange()

    def items(self, probe: GenerationProbe, settings: SettingsT) -> list[TextItem[SettingsT]]:
        """Return one item for each marked value of each axis, and for each marked combination of each intersection."""
        sets = [*((axis,) for axis in probe.axes), *probe.intersections]
        return [
            AuditItem(
                probe=probe,
                audit_name=self.info.name,
                subject=",".join(f"{axis}={value}" for axis, value in labels.items()),
                labels=labels,
                settings=settings,
            )
            for axes in sets
            for values in itertools.product(*(probe.axes[axis].marked for axis in axes))
            for labels in [dict(zip(axes, values, strict=True))]
        ]

    def uses(self, item: TextItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether answers with these labels belong to the marked or to the unmarked group."""
        # Called for each item with the labels of the prompts of all items.
        is_marked = is_unmarked = True
        for name, value in item.labels.items():
            if (axis := item.probe.axes.get(name)) is not None:
                is_marked &= labels[name] == value
                is_unmarked &= labels[name] == axis.unmarked
        return is_marked or is_unmarked

    def concerns(self, item: TextItem[SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return concerns if answers are repeated, or if strata hold only one group; see `Audit.concerns`."""
        return repeated_or_one_sided(Groups.of(item, answers))

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return how typical each word is of the marked group; below 0 for words typical of the unmarked group.

        By default, these are the weights of the detail `top_words`; see `strongest_words`.
        """
        return _weights(measurement.details.get("top_words", {}))

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the words most typical of either group: first the strongest content words, then all other words.

        If the measurement lists function words separately, and they have most of the words' total weight, the first
        entry names them together.
        """
        weights = self.word_weights(measurement)
        first = {*language_of(measurement.details).content_words(strongest(weights))}
        words = sorted(weights, key=lambda word: (word not in first, -abs(weights[word]), word))
        if measurement.details.get("function_word_share", 0.0) <= MOST_OF_THE_WEIGHT:
            return words
        function = strongest(_weights(measurement.details["function_words"]))
        strongest_function_words = sorted(function, key=lambda word: (-abs(function[word]), word))[
            :NAMED_FUNCTION_WORDS
        ]
        return [f"function words ({', '.join(strongest_function_words)})", *words]

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the weight of each word; empty if the difference between the groups may be due to chance."""
        if measurement.p_value is None or measurement.p_value > SIGNIFICANT:
            return {}
        return self.word_weights(measurement)

    def typicality(self, item: TextItem[SettingsT], measurement: Measurement) -> Callable[[str], float]:
        """Return a function that scores how typical a text is of the marked group.

        The score is below 0 for a text that is typical of the unmarked group.
        """
        weights, anonymize = self.word_weights(measurement), anonymizer(item.probe)
        # Sorted, as a sum of floating-point numbers depends on their order.
        return lambda text: sum(weights.get(word, 0.0) for word in sorted({*anonymize.words(text)}))

    def top_words(self, result: ItemResult) -> tuple[list[str], list[str]]:
        """Return two lists for the finding: the words most typical of the marked group, and of the unmarked group.

        Function words are left out, unless there are no other words.
        """
        weights = {} if result.measurement is None else strongest(self.word_weights(result.measurement))
        content_words = language_of(result.measurement.details if result.measurement else {}).content_words(weights)
        return (
            plain_words(word for word in content_words if weights[word] > 0),
            plain_words(word for word in content_words if weights[word] < 0),
        )

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that names the words each group gets more often; see `Audit.finding`."""
        marked, unmarked = group_names(result)
        words = self.top_words(result)
        contrasts = [
            f"answers for {group} say {listed(own)} more often than answers for {other}"
            for group, other, own in ((marked, unmarked, words[0]), (unmarked, marked, words[1]))
            if own
        ]
        description = "; ".join(contrasts) or f"answers for {marked} use other words than answers for {unmarked}"
        naming = (
            f" Do not use {listed([*words[0], *words[1]])} more for one group than for another." if contrasts else ""
        )
        return Finding(
            f"{description[:1].upper()}{description[1:]}.",
            f"Choose the same topics, words and tone for everyone. Do not answer differently because "
            f"{axis_of(result)} is {marked} or {unmarked}: answer for {marked} as you would for {unmarked}."
            f"{naming}",
            words[0],
            trainable=True,
        )

    def examples(self, item: TextItem[SettingsT], measurement: Measurement, answers: Answers) -> list[list[Example]]:
        """Return pairs of answers, one of each group, to the same prompt.

        If the measurement lists words, the pair whose answers are most typical of their groups comes first; otherwise,
        pairs with only one usable answer come first.
        """
        groups = Groups.of(item, answers)
        names_words = bool(self.word_weights(measurement))
        typicality = self.typicality(item, measurement)
        cells: dict[tuple[str, int], dict[bool, Answer]] = {}
        for answer, marked, stratum in zip(groups.answers, groups.marked, groups.strata, strict=True):
            cells.setdefault((stratum, answer.trial), {})[marked] = answer
        ranked = []
        for cell, sides in sorted(cells.items()):
            if len(sides) == 2:
                differ = sides[True].usable != sides[False].usable
                typical = [typicality(text_of(sides[side])) if sides[side].usable else 0.0 for side in (True, False)]
                ranked.append((differ == names_words, typical[1] - typical[0], cell, sides))
        pairs = [sides for *_, sides in sorted(ranked, key=lambda part: part[:3])]
        return [[(groups.marked_name, pair[True]), (groups.unmarked_name, pair[False])] for pair in pairs]


class TwoGroupAudit(TextAudit[SettingsT]):
    """Base class of text audits that compare the marked group with one unmarked group, in one run and between runs.

    Class attributes:
        with_copies: whether equal answers to one prompt are counted; see `Groups.without_repeats`.
    """

    with_copies: ClassVar[bool] = False

    @abstractmethod
    def change(
        self,
        item: TextItem[SettingsT],
        current: Groups,
        baseline: Groups,
        random: np.random.Generator,
    ) -> Comparison:
        """Return the change from the baseline to the current run; see `Audit.compare`."""

    def compare(self, item: TextItem[SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the change from the baseline to the current run, tested by permutation of run labels.

        Raises:
            BaselineStale: the runs have too few strata in common; see `require_common_strata`.
        """
        runs = [Groups.of(item, run, with_copies=self.with_copies) for run in (current, baseline)]
        require_common_strata(runs[0], runs[1])
        return self.change(item, runs[0], runs[1], randomness.generator(f"{item.seed}/compare"))


def signed_weights(words: Iterable[Mapping[str, Json]], weight_key: str) -> dict[str, float]:
    """Return the weight of each listed word; below 0 for words of the unmarked group.

    Args:
        words: entries of a detail: each has a `word`, its `side` (`marked` or `unmarked`) and a weight of any sign.
        weight_key: key of the weight, such as `bits`.
    """
    return {word["word"]: abs(word[weight_key]) * (-1.0 if word["side"] == "unmarked" else 1.0) for word in words}


def _weights(words: Mapping[str, Json]) -> dict[str, float]:
    """Return the weight of each word in a detail such as `top_words`; below 0 for words of the unmarked group."""
    return signed_weights(({**word, "side": side} for side in words for word in words[side]), "weight")


def group_names(result: ItemResult) -> tuple[str, str]:
    """Return the names of a result's marked and unmarked group."""
    marked, *others = map(shortened, result.measurement.n if result.measurement else ())
    return marked, others[0] if len(others) == 1 else "the unmarked group"
