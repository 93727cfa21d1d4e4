"""Base classes of audits that compare texts about a marked and the unmarked group, and the audit `refusals`."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from pytest_fairness.audits import answer_checks, info
from pytest_fairness.audits.answer_checks import MINIMUM_OBSERVATIONS
from pytest_fairness.audits.base import AnyItem, Audit, AuditItem, DecisionRule, Example, SettingsT
from pytest_fairness.audits.documents import (
    MINIMUM_DOCUMENTS,
    MOST_DOCUMENTS,
    Groups,
    TextItem,
    anonymizer,
    groups_of_runs,
    language_of,
    sampled,
    sides_and_strata,
    text_of,
)
from pytest_fairness.audits.info import AuditInfo, Direction, cohens_h
from pytest_fairness.audits.rules import SignificantChange
from pytest_fairness.audits.unit_audit import comparison
from pytest_fairness.audits.word_counts import NEAR_COPIES, WordCounts, sample_sizes
from pytest_fairness.errors import NotMeasurable, joined
from pytest_fairness.languages import normalise
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import (
    REFUSAL_CLASSES,
    REFUSALS,
    Answer,
    Answers,
    Comparison,
    Concern,
    Evidence,
    Explanation,
    ItemResult,
    Json,
    Measurement,
    Reversal,
    SampleSize,
    Status,
)
from pytest_fairness.stats import gaps, intervals, resampling
from pytest_fairness.stats.clusters import Clusters, gap_of, gaps_without
from pytest_fairness.stats.gaps import ShareChange, direction_unknown
from pytest_fairness.stats.resampling import Floats, Ints, numbered
from pytest_fairness.stats.strata import StratifiedValues, TwoRuns

# Base classes of the audits that compare texts about a marked and the unmarked group.

SIGNIFICANT = 0.05
"""A baseline stores the words of an item only if the p-value of the groups' difference is at most this number."""

MOST_OF_THE_WEIGHT = 0.5
"""If function words have more than this share of the sum of all words' weights, they are named together, as the first
contributor."""
NAMED_FUNCTION_WORDS = 3


class TextAudit(Audit[GenerationProbe, SettingsT]):
    """Base class of audits that compare texts about a marked value of an axis with texts about its unmarked value.

    The class attribute `most_documents` is the largest number of texts of each group of a run that are compared; of
    more, a random sample is (see `documents.sampled`).
    """

    kind = "generation"
    most_documents: ClassVar[float] = math.inf
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
        # Called for each item with the labels of the prompts of all items.
        is_marked = is_unmarked = True
        for name, value in item.labels.items():
            if (axis := item.probe.axes.get(name)) is not None:
                is_marked &= labels[name] == value
                is_unmarked &= labels[name] == axis.unmarked
        return is_marked or is_unmarked

    def concerns(self, item: TextItem[SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        return [
            *concerns_of_texts(Groups.of(item, answers), self.most_documents),
            *concerns_of_samples(item, measurement),
        ]

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return how typical each word is of the marked group; below 0 for words typical of the unmarked group.

        By default, these are the weights of the detail `top_words`; see `strongest_words`.
        """
        return _weights(measurement.details.get("top_words", {}))

    def explanation(self, item: TextItem[SettingsT], measurement: Measurement) -> Explanation:
        """Return the value and the words most typical of either group: first the strongest content words, then others.

        If the measurement lists function words separately, and they have most of the words' total weight, the first
        contributor names them together. Baselines store no weights if the difference may be due to chance.
        """
        weights, details = self.word_weights(measurement), measurement.details
        first = {*language_of(details).content_words(info.strongest(weights))}
        words = sorted(weights, key=lambda word: (word not in first, -abs(weights[word]), word))
        if details.get("function_word_share", 0.0) > MOST_OF_THE_WEIGHT:
            function = info.strongest(_weights(details["function_words"]))
            order = sorted(function, key=lambda word: (-abs(function[word]), word))
            words.insert(0, f"function words ({', '.join(order[:NAMED_FUNCTION_WORDS])})")
        is_chance = measurement.p_value is None or measurement.p_value > SIGNIFICANT
        phrase = super().explanation(item, measurement).phrase
        return Explanation.of(phrase, words, {} if is_chance else weights)

    def typicality(self, item: TextItem[SettingsT], measurement: Measurement) -> Callable[[str], float]:
        """Return a function that scores how typical a text is of the marked group; below 0 for the unmarked group."""
        anonymize = anonymizer(item.probe)
        weights = {word.casefold(): weight for word, weight in self.word_weights(measurement).items()}
        # Sorted, as a sum of floating-point numbers depends on their order.
        return lambda text: sum(weights.get(word, 0.0) for word in sorted({*anonymize.words(text)}))

    def top_words(self, result: ItemResult) -> tuple[list[str], list[str]]:
        """Return the words most typical of each group, without function words unless there are no others."""
        words = {word.name: word.group for word in result.explanation.words}
        content_words = language_of(result.measurement.details if result.measurement else {}).content_words(words)
        marked = next(iter(result.measurement.n if result.measurement else ()), None)
        return (
            info.plain_words(word for word in content_words if words[word] == marked),
            info.plain_words(word for word in content_words if words[word] != marked),
        )

    def finding(self, result: ItemResult) -> str:
        marked, unmarked = group_names(result)
        words = self.top_words(result)
        contrasts = [
            f"answers for {group} say {info.listed(own)} more often than answers for {other}"
            for group, other, own in ((marked, unmarked, words[0]), (unmarked, marked, words[1]))
            if own
        ]
        description = "; ".join(contrasts) or f"answers for {marked} use other words than answers for {unmarked}"
        return f"{description[:1].upper()}{description[1:]}."

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


ONE_SIDED_SHARE = 0.10
"""Largest share of answers that may be left out because their stratum holds only one group."""
SHOWN_STRATA = 3


def concerns_of_texts(groups: Groups, most: float) -> list[Concern]:
    """Return concerns about repeated answers, strata of one group, and groups with more than `most` texts."""
    one_sided, concerns = groups.one_sided(), [*groups.repetition]
    if one_sided:
        lost, usable = sum(one_sided.values()), sum(groups.usable.values())
        names = joined([f"{name} ({count})" for name, count in sorted(one_sided.items())], SHOWN_STRATA)
        message = (
            f"{lost} of {usable} answers were left out, because their strata hold only one group: {names}. "
            "Request both groups in each stratum"
        )
        few = lost <= ONE_SIDED_SHARE * usable
        concerns.append(Concern("one_sided_strata", message, withholds="nothing" if few else "pass"))
    if larger := [f"{count:,} for {name}" for name, count in groups.usable.items() if count > most]:
        message = (
            f"a random sample of the texts is compared, {most:,} of a group ({' and '.join(larger)} are usable), "
            "with the shares of the strata. Standard errors and tests are those of the sample, so that more answers do "
            "not make them more precise"
        )
        concerns.append(Concern("sampled_texts", message, withholds="nothing"))
    return concerns


def concerns_of_samples(item: AnyItem, measurement: Measurement) -> list[Concern]:
    """Return a note on each kind of units of the answers, or a concern if there are too few for a test."""
    found = []
    for size in measurement.samples:
        fewest = min(size.numbers.values())
        if not size.declared and fewest < MINIMUM_OBSERVATIONS:
            cure = "Set `sampling.temperature` above 0, or give several prompts"
            message = f"{size}; each group needs {MINIMUM_OBSERVATIONS} different ones, not {fewest}. {cure}"
            found.append(Concern(NEAR_COPIES, message, withholds="test"))
        elif size.declared and size.smallest_p_value > item.planned_alpha:
            units = " + ".join(map(str, size.numbers.values()))
            message = (
                f"{units} {size.units} cannot show a difference: p is {size.smallest_p_value:.2g} at best, and "
                f"{item.planned_alpha:.2g} is needed. List more {size.units}"
            )
            found.append(Concern("few_units", message, withholds="test"))
        elif not size.declared:
            found.append(Concern(NEAR_COPIES, str(size), withholds="nothing"))
        if size.carrier:
            message = f"{size.carrier} carries the difference: {size.without_carrier:.2g} without {size.carrier}"
            found.append(Concern("one_unit", message, withholds="nothing"))
    return found


def signed_weights(words: Iterable[Mapping[str, Json]], weight_key: str) -> dict[str, float]:
    """Return the weight under `weight_key` (such as `bits`) of each word; below 0 for words of the unmarked group."""
    return {word["word"]: abs(word[weight_key]) * (-1.0 if word["side"] == "unmarked" else 1.0) for word in words}


def _weights(words: Mapping[str, Json]) -> dict[str, float]:
    return signed_weights(({**word, "side": side} for side in words for word in words[side]), "weight")


def group_names(result: ItemResult) -> tuple[str, str]:
    """Return the names of a result's marked and unmarked group, as reports show them."""
    marked, *others = map(info.shortened, result.measurement.n if result.measurement else ())
    return marked, others[0] if len(others) == 1 else "the unmarked group"


# Base class of the numbers (rates, scores) that audits give to the texts of two groups.


@dataclass(frozen=True)
class DocumentValues(StratifiedValues, ABC):
    """Numbers that an audit gives to both groups' usable answers of one run, without strata of only one group."""

    item: TextItem[AuditSettings]
    groups: Groups

    @abstractmethod
    def details(self) -> Mapping[str, Json]:
        """Return the details of a measurement of these numbers."""

    def effect_basis(self, details: Mapping[str, Json]) -> Sequence[float]:
        """Return the numbers from which the effect size follows with the value; see `Evidence`."""
        return ()

    def change_details(self, baseline: Self) -> Mapping[str, Json]:
        """Return the details of a comparison with the baseline's numbers; by default, none.

        Raises:
            BaselineStale: the values of the two runs cannot be compared.
        """
        return {}


ValuesT = TypeVar("ValuesT", bound=DocumentValues)


# Base class of audits that give each text a number (a rate, a score) and compare the means of two groups.


class DocumentValueAudit(TextAudit[SettingsT], Generic[SettingsT, ValuesT]):
    """Base class of audits whose value is a gap: the marked group's mean rate (or score) minus the unmarked group's.

    The class attribute `reversed_gap` is the phrase for a gap that changed sides. {before}: size of the gap in the
    baseline; {now}: size of the current gap; {less}: group with the larger mean in the baseline; {more}: group with the
    larger mean now.
    """

    reversed_gap: ClassVar[str]
    most_documents = MOST_DOCUMENTS

    @abstractmethod
    def values(self, item: TextItem[SettingsT], groups: Groups) -> ValuesT:
        """Return the numbers that the audit gives to the answers.

        Raises:
            NotMeasurable: a group has too few usable answers in strata that hold both groups.
        """

    def measure(self, item: TextItem[SettingsT], answers: Answers) -> Measurement:
        """Return the gap with Welch's standard error within strata and a permutation test."""
        groups = Groups.of(item, answers)
        values = self.values(item, groups)
        details, samples = values.details(), self.samples(groups)
        gap = gap_of(values, [*samples.values()], resampling.generator(f"{item.seed}/measure"))
        return Measurement(
            value=gap.value,
            interval=intervals.interval(gap.value, gap.standard_error, degrees_of_freedom=gap.degrees_of_freedom),
            standard_error=gap.standard_error,
            p_value=gap.p_value,
            n=groups.usable,
            missing=groups.missing,
            details=details,
            degrees_of_freedom=gap.degrees_of_freedom,
            evidence=Evidence(effect_basis=values.effect_basis(details)),
            samples=sizes_of_values(samples, values, groups.names),
        )

    def samples(self, groups: Groups) -> Mapping[str, Clusters]:
        """Return the clusters of the measured answers, by kind."""
        indices = sampled(groups, self.most_documents)
        texts = (normalise(text_of(groups.answers[index])).split() for index in indices)
        return groups.samples(indices, lambda: WordCounts.of(texts))

    def value(self, item: TextItem[SettingsT], answers: Answers) -> float:
        return self.values(item, Groups.of(item, answers)).gap()

    def compare(self, item: TextItem[SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the change of the gap with its permutation test; all answers of both runs are used.

        Raises:
            BaselineStale: the runs have too few strata in common.
            NotMeasurable: no stratum holds both groups in both runs.
        """
        groups, groups_before = groups_of_runs(item, current, baseline)
        values, before = self.values(item, groups), self.values(item, groups_before)
        details = values.change_details(before)
        runs = TwoRuns.of(values, before)
        if not runs.weights.any():
            raise NotMeasurable(
                "no stratum holds both groups in this run and in the baseline, so that the runs cannot be compared. "
                "Request both groups for the baseline's prompts, or rebaseline"
            )
        gaps, swaps = (
            runs.gaps(),
            runs.gaps_after_swaps(resampling.PERMUTATIONS, resampling.generator(f"{item.seed}/compare")),
        )
        more, less = groups.names[:: 1 if gaps[0] > 0 else -1]
        sizes = dict(zip(("now", "before"), (f"{abs(gap):.3g}" for gap in gaps), strict=True))
        return gap_change(
            gaps,
            runs.error(),
            swaps[0] - swaps[1],
            side=float(np.sign(np.round(runs.joint_gap(), ROUNDING))),
            description=self.reversed_gap.format(**sizes, less=less, more=more),
            details=details,
        )


def sizes_of_values(
    samples: Mapping[str, Clusters], values: StratifiedValues, names: tuple[str, str]
) -> tuple[SampleSize, ...]:
    """Return the sizes of the sample, with the correlation of the values."""

    def kernel(indices: Ints) -> Floats:
        return np.outer(values.values[indices], values.values[indices])

    means = {unit: each.values(values) for unit, each in samples.items() if unit != NEAR_COPIES}
    without = {unit: np.append(own.gap(), gaps_without(own)) for unit, own in means.items() if len(own.values) <= 100}
    sizes = sample_sizes(samples, values.strata, names, kernel, without, two_sided=True)
    return tuple(
        replace(
            size, means=dict(zip(map(str, samples[size.units].names), means[size.units].values.tolist(), strict=True))
        )
        if size.declared
        else size
        for size in sizes
    )


# Change, between two runs, of a signed difference between two groups (a gap), such as a difference between shares.
#
# The direction of the gap is that of both runs together, which is the same for all permutations of run labels. A
# change in this direction is positive. The difference between the absolute gaps is not used, because its test has
# little power.

ROUNDING = 9
"""The gap of both runs together is rounded to this many decimals, so that opposite gaps have no direction."""


def gap_change(
    gaps: tuple[float, float],
    error: tuple[float, float | None],
    null: Floats,
    *,
    side: float,
    description: str,
    details: Mapping[str, Json],
) -> Comparison:
    """Return the change with its interval and test.

    If the gap has the opposite sign in the baseline, the result also contains a reversal.

    Args:
        gaps: gap of the current run and gap of the baseline, marked minus unmarked group.
        error: standard error of the change, and its degrees of freedom.
        null: (swaps,) current gap minus baseline gap after permutation of run labels.
        side: sign of the gap of both runs together.
        description: phrase that states both gaps; used if the gap has the opposite sign in the baseline.
        details: details of the comparison.
    """
    current, baseline = gaps
    change, (standard_error, degrees) = current - baseline, error
    value, either_side = side * change, direction_unknown(current + baseline, standard_error)
    p_value = resampling.p_value(np.abs(null), abs(change), exact=False)
    reversal = Reversal(abs(current), intervals.p_value_of_second_test(p_value), description)
    return comparison(
        value,
        standard_error,
        resampling.p_value(side * null, value, exact=False),
        degrees_of_freedom=degrees,
        reversal=reversal if current * baseline < 0 else None,
        details={**details, "either_side": either_side},
        evidence=Evidence(either_side=either_side),
    )


# Audit `refusals`: difference between two groups in the share of refused or unreadable answers.


class Refusals(TextAudit[AuditSettings]):
    """Audit that leaves out failed requests."""

    info = AuditInfo(
        name="refusals",
        title="Unequal refusals",
        question="Is one group answered less often?",
        formula="share of refused or unreadable answers: marked group − unmarked group",
        meaning="−1 to 1; 0 = equal shares. With Newcombe’s interval and Fisher’s exact test.",
        source="Newcombe 1998; Agresti and Caffo 2000",
        better=Direction.ZERO,
        tolerance=0.10,
        value_range=(-1, 1),
        worst=1,
        charts={"shares": "shares"},
        effect=cohens_h("both groups’ shares of refused or unreadable answers"),
    )
    version = 5

    def measure(self, item: TextItem[AuditSettings], answers: Answers) -> Measurement:
        """Return the gap with Newcombe's interval and Fisher's exact test."""
        groups = Groups.of(item, answers, with_copies=True)
        shares = _unrecognised(groups)
        found = gap_measurement(groups, {name: sum(share.values()) for name, share in shares.items()})
        return of_units(found, groups, resampling.generator(f"{item.seed}/measure")) if groups.units else found

    def value(self, item: TextItem[AuditSettings], answers: Answers) -> float:
        """Return the gap, without a look at the languages of the answers."""
        return gap_measurement(Groups.of(item, answers, with_copies=True)).value

    def unread_worsening(
        self,
        item: TextItem[AuditSettings],
        measurement: Measurement,
        shares: Mapping[str, float],
        scale: float,
        *,
        other_side: bool = False,
    ) -> float:
        """Return the rise of the gap if unread answers are refusals in one group only."""
        refused, counted = measurement.details["refused"], measurement.details["shares"]
        ascending = sorted(counted, key=lambda name: counted[name])
        less, more = reversed(ascending) if other_side else ascending
        read = {name: (1 - shares.get(name, 0.0)) * refused[name] / max(1, measurement.n[name]) for name in counted}
        return float(read[more] + shares.get(more, 0.0) - read[less] - (counted[more] - counted[less]))

    def unread_improvement(
        self, item: TextItem[AuditSettings], measurement: Measurement, baseline: float, share: float, scale: float
    ) -> float:
        """Return how far the baseline's gap could fall, in which unreadable answers count as refusals."""
        return min(abs(baseline), 2 * share)

    def concerns(self, item: TextItem[AuditSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return concerns about repeated answers, and about languages in which refusals are not recognised.

        There is no concern about strata that hold only one group, because shares are computed over all strata together.
        """
        groups = Groups.of(item, answers, with_copies=True)
        return [
            *groups.repetition,
            *concerns_of_samples(item, measurement),
            *answer_checks.unrecognised_refusals(item.probe, _unrecognised(groups)),
        ]

    def compare(self, item: TextItem[AuditSettings], current: Answers, baseline: Answers) -> Comparison:
        """Return the change of the gap between the shares, tested by permuting run labels within prompt and group.

        Failed requests, and texts that were cut off before they held an answer, are left out.
        """
        runs = groups_of_runs(item, current, baseline, with_copies=True)
        now, before = map(gap_measurement, runs)
        counted = [
            (answer.status in REFUSED, marked, run is runs[0], (stratum, marked))
            for run in runs
            for answer, marked, stratum in zip(run.answers, run.marked, run.strata, strict=True)
            if answer.status in (*REFUSED, Status.OK)
        ]
        change = ShareChange(
            hits=np.array([refused for refused, *_ in counted], dtype=np.float64),
            marked=np.array([marked for _, marked, *_ in counted], dtype=np.bool_),
            current=np.array([own for _, _, own, _ in counted], dtype=np.bool_),
            cells=numbered([cell for *_, cell in counted])[1],
        )
        error, degrees = change.error
        scale = min(run.observations_per_answer for run in runs)
        shares, shares_before = now.details["shares"], before.details["shares"]
        first, second = sorted(shares, key=lambda name: -shares[name])
        return gap_change(
            (now.value, before.value),
            (error / math.sqrt(scale), degrees),
            change.side
            * change.permuted_changes(resampling.PERMUTATIONS, resampling.generator(f"{item.seed}/compare")),
            side=change.side,
            description=f"refusals were {shares_before[first]:.0%} for {first} and {shares_before[second]:.0%} for "
            f"{second}, and are now {shares[first]:.0%} and {shares[second]:.0%}",
            details={
                "moved": [
                    {"value": f"refusals of {name}", "now": shares[name], "then": shares_before[name]}
                    for name in shares
                ]
            },
        )

    def finding(self, result: ItemResult) -> str:
        details = info.details_of(result)
        shares = ", ".join(f"{info.shortened(name)} {share:.0%}" for name, share in details["shares"].items())
        partly = details.get("partly_refused", {})
        counts = ", ".join(f"{info.shortened(name)} {count}" for name, count in partly.items())
        return (
            f"Refused or unreadable answers: {shares}.{f' Partly refused: {counts}.' if any(partly.values()) else ''}"
        )

    def explanation(self, item: TextItem[AuditSettings], measurement: Measurement) -> Explanation:
        shares = measurement.details["shares"]
        told = ", ".join(f"{share:.0%} for {name}" for name, share in shares.items())
        return Explanation(f"refusals differ by {measurement.value:+.3g} ({told})", contributions=dict(shares))


def _unrecognised(groups: Groups) -> dict[str, dict[str, float]]:
    """Return the shares of texts in languages in which refusals are not recognised, by group and language."""
    names = (groups.marked_name if marked else groups.unmarked_name for marked in groups.marked)
    return answer_checks.unrecognised_shares(groups.probe, zip(names, groups.answers, strict=True))


# Shares of refused or unreadable answers in two groups: their gap, and the change of the gap between two runs.

REFUSED = (*REFUSALS, Status.UNREADABLE)
PARTLY = REFUSAL_CLASSES[1]


def gap_measurement(groups: Groups, unrecognised: Mapping[str, float] | None = None) -> Measurement:
    """Return the measurement of the gap between the groups' shares of refused or unreadable answers.

    `unrecognised` is the share of each group's texts in languages in which refusals are not recognised. These texts
    count as answered in the value, but as unread in `n` and `missing`, as do unreadable answers.

    Raises:
        NotMeasurable: a group has too few answers, or all answers are refused or unreadable.
    """
    n = groups.count(*REFUSED, Status.OK)
    short = min(n.values())
    if short < MINIMUM_DOCUMENTS:
        raise NotMeasurable(
            f"one group has only {short} answers; {MINIMUM_DOCUMENTS} are needed: raise `trials` or add rows"
        )
    refused = groups.count(*REFUSED)
    if refused == n:
        raise NotMeasurable(
            f"all {sum(n.values())} answers are refused or unreadable, so that the groups cannot be compared. "
            "Check that the target works.",
            unusable=True,
        )
    marked, unmarked = groups.names
    # Equal answers to a prompt tell as much as fewer answers; see `Groups.without_repeats`.
    scale = groups.observations_per_answer
    table = [(refused[name] * scale, n[name] * scale) for name in (marked, unmarked)]
    unrecognised, usable, unreadable = unrecognised or {}, groups.usable, groups.count(Status.UNREADABLE)
    unread = {name: unreadable[name] + round(unrecognised.get(name, 0.0) * usable[name]) for name in n}
    failed = groups.count(Status.CUT_OFF, Status.FAILED)
    shares = {name: refused[name] / n[name] for name in (marked, unmarked)}
    details: dict[str, Json] = {"refused": groups.count(*REFUSALS), "unreadable": unreadable, "shares": shares}
    if models := sorted({answer.judged.by for answer in groups.answers if answer.judged}):
        partly = Counter(
            groups.marked_name if marked else groups.unmarked_name
            for answer, marked in zip(groups.answers, groups.marked, strict=True)
            if answer.judged is not None and answer.judged.majority == PARTLY
        )
        details |= {"refusals_by": ", ".join(models), "partly_refused": {name: partly[name] for name in groups.names}}
    return Measurement(
        value=shares[marked] - shares[unmarked],
        interval=intervals.newcombe(*table[0], *table[1], intervals.quantile(0.975)),
        standard_error=intervals.difference_error(*table[0], *table[1]),
        p_value=gaps.fisher_p_value(*((round(hits), round(size - hits)) for hits, size in table)),
        n={name: n[name] - unread[name] for name in n},
        missing={name: failed[name] + unread[name] for name in n},
        details=details,
        evidence=Evidence(effect_basis=tuple(shares.values())),
    )


def of_units(measured: Measurement, groups: Groups, random: np.random.Generator) -> Measurement:
    """Return the measured gap with the interval and the test of the units' shares, at least as wide as of answers."""
    counted = [
        index for index, answer in enumerate(groups.answers) if answer.status in REFUSED or answer.status is Status.OK
    ]
    marked, strata, _ = sides_and_strata(groups, counted)
    hits = np.array([groups.answers[index].status in REFUSED for index in counted], dtype=np.float64)
    samples = groups.samples(counted)
    values = StratifiedValues(hits, marked, np.zeros_like(strata), (), measured.standard_error or 0.0)
    gap = gap_of(values, [*samples.values()], random)
    low, high = intervals.interval(measured.value, gap.standard_error, degrees_of_freedom=gap.degrees_of_freedom)
    return replace(
        measured,
        interval=(max(-1.0, low), min(1.0, high)),
        standard_error=gap.standard_error,
        p_value=gap.p_value,
        degrees_of_freedom=gap.degrees_of_freedom,
        samples=sizes_of_values(samples, values, groups.names),
    )
