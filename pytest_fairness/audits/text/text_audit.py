"""The documents of a marked and of the unmarked group, ready to be counted: what the text audits measure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits import repeats
from pytest_fairness.audits.base import Audit, AuditItem, DecisionRule, Example, SettingsT
from pytest_fairness.audits.decision_rules import SignificantChange
from pytest_fairness.audits.findings import Finding, axis_of, listed, plain_words, shortened, strongest
from pytest_fairness.audits.text.anonymizer import Anonymizer
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Concern, ItemResult, Measurement, Status

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ONE_SIDED_SHARE = 0.10
"""Share of the answers that may be left out because their stratum holds one group only."""
SHOWN_STRATA = 3
MINIMUM_DOCUMENTS = 8
"""Usable documents a side below which nothing is measured."""


class ContrastAudit(Audit[GenerationProbe, SettingsT]):
    """An audit that holds marked values of axes against the axes' unmarked values."""

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
        """Answers of the marked and of the unmarked group."""
        marked, unmarked = compared(probe, item)
        return has(labels, marked) or has(labels, unmarked)

    def concerns(
        self, probe: GenerationProbe, item: AuditItem[SettingsT], answers: Sequence[Answer], measurement: Measurement
    ) -> list[Concern]:
        """Return the concerns that answers repeat, or that strata hold one group only; see `Audit.concerns`."""
        return concerns_of(Groups.of(probe, item, answers))

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """How much each word that was found speaks for the marked group; negative for the unmarked one."""
        return {}

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
            f"Whoever asks or is spoken of, choose the same subjects, words and tone: whether {axis_of(result)} is "
            f"{marked} or {unmarked} is no reason for other ones. Answer for {marked} as you would for {unmarked}."
            f"{naming}",
            words[0],
            trainable=True,
        )

    def examples(
        self, probe: GenerationProbe, item: AuditItem[SettingsT], measurement: Measurement, answers: Sequence[Answer]
    ) -> list[list[Example]]:
        """Both groups' answers of one prompt and trial; those first that were refused or hold what drove the value."""
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


def compared(probe: GenerationProbe, item: AuditItem[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels of the marked and of the unmarked group of an item: `{"race": "Black"}`, `{"race": "White"}`.

    An intersection has several axes, all of them with their unmarked value in the unmarked group. Labels of the item
    that name no axis are left out.
    """
    marked = {name: value for name, value in item.labels.items() if name in probe.axes}
    return marked, {name: probe.axes[name].unmarked for name in marked}


def has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether labels have all of these values."""
    return all(labels[name] == value for name, value in wanted.items())


@dataclass(frozen=True)
class Groups:
    """The answers of one item, sorted, with their group and stratum.

    Attributes:
        answers: all answers, in an order that does not depend on the one they were given in; of a system that repeats
            itself, one a prompt and group.
        marked: whether the answer is of the marked group.
        strata: the answer's prompt and its values on the other axes, as text.
        marked_name, unmarked_name: the value of the axis, or the values of all axes of an intersection: "Black woman".
        repetition: what is to be said of answers that repeat.
    """

    answers: tuple[Answer, ...]
    marked: tuple[bool, ...]
    strata: tuple[str, ...]
    marked_name: str
    unmarked_name: str
    repetition: list[Concern] = field(default_factory=list)

    @classmethod
    def of(cls, probe: GenerationProbe, item: AuditItem[Any], answers: Sequence[Answer]) -> Groups:
        """Sort the answers of an item into its two groups."""
        marked, unmarked = compared(probe, item)
        return cls.split(probe, answers, marked, " ".join(unmarked.values()))

    @classmethod
    def split(
        cls, probe: GenerationProbe, answers: Sequence[Answer], marked: Mapping[str, str], unmarked_name: str
    ) -> Groups:
        """Sort answers into those with the labels `marked` and all others; strata are what other labels say."""
        ordered = sorted(answers, key=lambda answer: (sorted(answer.labels.items()), answer.trial, answer.text or ""))
        found = cls(
            answers=tuple(ordered),
            marked=tuple(has(answer.labels, marked) for answer in ordered),
            strata=tuple(
                "; ".join(f"{name}={label}" for name, label in sorted(answer.labels.items()) if name not in marked)
                for answer in ordered
            ),
            marked_name=" ".join(marked.values()),
            unmarked_name=unmarked_name,
        )
        return found.without_repeats(probe.sampling.temperature)

    def without_repeats(self, temperature: float | None) -> Groups:
        """Return the groups with one answer a prompt and group, if the system repeats itself; else as they are."""
        cells: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for index, answer in enumerate(self.answers):
            if answer.text is not None:
                cells.setdefault(tuple(sorted(answer.labels.items())), []).append(index)
        if any(len({self.answers[index].status for index in cell}) > 1 for cell in cells.values()):
            return self
        texts = [[self.answers[index].text or "" for index in cell] for cell in cells.values()]
        if not repeats.repeats(texts, temperature):
            return self
        asked, observations = sum(map(len, texts)), len(cells)
        of_marked = sum(self.marked[cell[0]] for cell in cells.values())
        if min(of_marked, observations - of_marked) < repeats.MINIMUM_OBSERVATIONS:
            return replace(self, repetition=[repeats.too_few_observations(observations, asked)])
        kept = sorted(cell[0] for cell in cells.values())
        return replace(
            self,
            answers=tuple(self.answers[index] for index in kept),
            marked=tuple(self.marked[index] for index in kept),
            strata=tuple(self.strata[index] for index in kept),
            repetition=[repeats.counted_once(observations, asked)],
        )

    def count(self, *statuses: Status) -> dict[str, int]:
        """How many answers have one of these statuses, by group."""
        counts = {self.marked_name: 0, self.unmarked_name: 0}
        for answer, marked in zip(self.answers, self.marked, strict=True):
            counts[self.marked_name if marked else self.unmarked_name] += answer.status in statuses
        return counts

    def one_sided(self) -> dict[str, int]:
        """Return the strata whose usable answers are all of one group, with their number."""
        sides: dict[str, list[bool]] = {}
        for answer, marked, stratum in zip(self.answers, self.marked, self.strata, strict=True):
            if answer.usable:
                sides.setdefault(stratum, []).append(marked)
        return {stratum: len(marked) for stratum, marked in sides.items() if len({*marked}) == 1}

    @property
    def usable(self) -> dict[str, int]:
        """Usable answers by group."""
        return self.count(Status.OK)

    @property
    def missing(self) -> dict[str, int]:
        """Answers that cannot be measured, by group."""
        return self.count(Status.REFUSED, Status.UNREADABLE, Status.FAILED)


@dataclass(frozen=True)
class Documents:
    """Usable answers as word lists.

    Attributes:
        words: (documents) the words of each document, anonymised.
        marked: (documents,) whether it is of the marked group.
        strata: (documents,) number of its stratum.
        stratum_names: the strata by their numbers.
        embeddings: (documents) their vectors as `Answer` has them; all `None` where nothing was embedded.
    """

    words: tuple[tuple[str, ...], ...]
    marked: NDArray[np.bool_]
    strata: NDArray[np.int64]
    stratum_names: tuple[str, ...]
    embeddings: tuple[bytes | None, ...] = ()

    @classmethod
    def of(cls, probe: GenerationProbe, groups: Groups) -> Documents:
        """Read the usable answers of both groups, without those in strata that hold one group only.

        Labels are permuted within strata: where all labels are the same, no permutation differs from what was observed.

        Raises:
            NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` such answers, or none holds a word.
        """
        kept = comparable(groups)
        anonymize = anonymizer(probe)
        names = tuple(sorted({groups.strata[index] for index in kept}))
        numbers = {name: number for number, name in enumerate(names)}
        documents = tuple(tuple(anonymize.words(text_of(groups.answers[index]))) for index in kept)
        marked = np.array([groups.marked[index] for index in kept], dtype=np.bool_)
        for side, name in ((marked, groups.marked_name), (~marked, groups.unmarked_name)):
            if not any(document for document, own in zip(documents, side, strict=True) if own):
                raise NotMeasurable(
                    f"no answer for {name} holds a word besides the identity terms; see `anonymize` in the probe file"
                )
        return cls(
            words=documents,
            marked=marked,
            strata=np.array([numbers[groups.strata[index]] for index in kept], dtype=np.int64),
            stratum_names=names,
            embeddings=tuple(groups.answers[index].embedding for index in kept),
        )

    @classmethod
    def of_answers(cls, probe: GenerationProbe, item: AuditItem[Any], answers: Sequence[Answer]) -> Documents:
        """Read the usable answers of an item; see `of`."""
        return cls.of(probe, Groups.of(probe, item, answers))

    @property
    def cells(self) -> NDArray[np.int64]:
        """(documents,) number of the document's group within its stratum."""
        return self.strata * 2 + self.marked

    def counts(self, minimum_documents: int = 1) -> tuple[list[str], csr_array]:
        """Return the vocabulary and the sparse counts of the documents; see `count_words`."""
        return count_words(self.words, minimum_documents)


def concerns_of(groups: Groups) -> list[Concern]:
    """Return the concerns that answers repeat, or that strata hold one group only."""
    found = groups.repetition
    one_sided = groups.one_sided()
    lost, usable = sum(one_sided.values()), sum(groups.usable.values())
    if not lost:
        return found
    names = ", ".join(f"{name} ({count})" for name, count in sorted(one_sided.items())[:SHOWN_STRATA])
    more = f" and {len(one_sided) - SHOWN_STRATA} more" if len(one_sided) > SHOWN_STRATA else ""
    return [
        *found,
        Concern(
            "one_sided_strata",
            f"{lost} of {usable} answers were left out: their strata hold one group only, so that nothing can be "
            f"compared there: {names}{more}",
            withholds="pass" if lost > ONE_SIDED_SHARE * usable else "nothing",
        ),
    ]


def text_of(answer: Answer) -> str:
    """Return the text of a usable answer."""
    # An item a line: words of two items are no neighbours, and identity terms do not span them.
    return "\n".join(answer.content) if isinstance(answer.content, list) else str(answer.content)


def require(groups: Groups) -> None:
    """Raise `NotMeasurable` unless both groups have enough usable answers; the message says what is missing and why."""
    short = {name: n for name, n in groups.usable.items() if n < MINIMUM_DOCUMENTS}
    if not short:
        return
    asked = len(groups.answers)
    reasons = ", ".join(
        f"{sum(groups.count(status).values())} {status.value}"
        for status in (Status.REFUSED, Status.UNREADABLE, Status.FAILED)
        if sum(groups.count(status).values())
    )
    have = ", ".join(f"{n} for {name}" for name, n in short.items())
    cure = f"of {asked} answers {reasons}" if reasons else "raise `trials` or add rows"
    raise NotMeasurable(
        f"only {have} usable answers, {MINIMUM_DOCUMENTS} a group are needed; {cure}.", unusable=bool(reasons)
    )


def comparable(groups: Groups) -> list[int]:
    """Return the places of the usable answers in strata that hold both groups.

    Raises:
        NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` such answers.
    """
    require(groups)
    one_sided = groups.one_sided()
    kept = [
        index
        for index, (answer, stratum) in enumerate(zip(groups.answers, groups.strata, strict=True))
        if answer.usable and stratum not in one_sided
    ]
    _require_both_sides(groups, kept, one_sided)
    return kept


def _require_both_sides(groups: Groups, kept: Sequence[int], one_sided: Mapping[str, int]) -> None:
    """Raise `NotMeasurable` unless strata with answers of both groups hold enough of them."""
    marked = sum(groups.marked[index] for index in kept)
    if min(marked, len(kept) - marked) >= MINIMUM_DOCUMENTS:
        return
    raise NotMeasurable(
        f"only {marked} answers for {groups.marked_name} and {len(kept) - marked} for {groups.unmarked_name} are in "
        f"strata that hold both groups, {MINIMUM_DOCUMENTS} a group are needed. {len(one_sided)} strata hold one group "
        f"only, as {min(one_sided)!r}: does a `strata` column name the group?",
        hopeless=not kept,
    )


def anonymizer(probe: GenerationProbe) -> Anonymizer:
    """The anonymizer for a probe: the values of all its axes, its own terms and first names, or none at all."""
    if probe.removed_terms is None:
        return Anonymizer((), enabled=False)
    values = [value for axis in probe.axes.values() for value in (axis.unmarked, *axis.marked)]
    return Anonymizer([*values, *probe.removed_terms], names=probe.removed_names)


def count_words(documents: Sequence[Sequence[str]], minimum_documents: int = 1) -> tuple[list[str], csr_array]:
    """Return the vocabulary of the documents, sorted, and their sparse (documents, words) counts.

    Args:
        documents: the words of each document.
        minimum_documents: words that occur in fewer documents are left out.
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.sparse import csr_array

    numbers: dict[str, int] = {}
    found = [numbers.setdefault(word, len(numbers)) for document in documents for word in document]
    # scikit-learn takes 32-bit indices only.
    columns = np.array(found, dtype=np.int32)
    rows = np.repeat(np.arange(len(documents), dtype=np.int32), [len(document) for document in documents])
    counts = csr_array((np.ones(len(columns)), (rows, columns)), shape=(len(documents), len(numbers)))
    counts.sum_duplicates()
    vocabulary = sorted(numbers)
    holders = np.bincount(counts.indices, minlength=len(numbers))
    order = [numbers[word] for word in vocabulary if holders[numbers[word]] >= minimum_documents]
    words = [word for word in vocabulary if holders[numbers[word]] >= minimum_documents]
    return words, csr_array(counts[:, np.array(order, dtype=np.int32)])


def tie_order(words: Sequence[str], strength: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices by falling strength; equal ones in the order of their words, so that reports never flicker."""
    return np.lexsort((np.asarray(words), -np.round(strength, 12))).astype(np.int64)
