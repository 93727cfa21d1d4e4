"""Answers of two groups as documents: groups with their strata, word counts, and the use of words."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from pytest_fairness.audits import answer_checks
from pytest_fairness.audits.base import AuditItem, SettingsT
from pytest_fairness.audits.terms import Anonymizer
from pytest_fairness.audits.word_counts import NEAR_COPIES, WordCounts, near_copies, sample_sizes, similarities
from pytest_fairness.backends import chunks_of, map_chunks
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.languages import ENGLISH, Language, language, normalise
from pytest_fairness.probes import identity_terms
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.generation import FEWEST_NAMES, GenerationProbe
from pytest_fairness.probes.identity_terms import LEAST_ANSWERS, name_label
from pytest_fairness.records import MISSING, Answer, Answers, Concern, Json, SampleSize, Status
from pytest_fairness.stats import intervals, resampling
from pytest_fairness.stats.clusters import Clusters
from pytest_fairness.stats.resampling import Bools, Floats, Ints, numbered

# Usable answers as documents (word counts), and the joined documents of two runs.

AT_ONCE = 2**14
"""Number of texts that are split into words at a time."""


@dataclass(frozen=True)
class Documents:
    """Usable answers as word counts; arrays have one entry for each document.

    Attributes:
        words: word counts of the documents, without identity terms.
        marked: whether the document belongs to the marked group.
        strata: stratum number of each document.
        stratum_names: name of each stratum, by its number.
        embeddings: embedding of each document, if it has one.
        current: whether the document belongs to the current run; all `True` for a single run.
        names: names of the marked and of the unmarked group.
        samples: clusters of documents that count as one observation, by kind; see `clusterings`.
        clusters: the clusters by which the documents are tested; `None` if each document is an observation.
    """

    words: WordCounts
    marked: Bools
    strata: Ints
    stratum_names: tuple[str, ...]
    embeddings: tuple[bytes | None, ...]
    current: Bools
    names: tuple[str, str]
    samples: Mapping[str, Clusters] = field(default_factory=dict)
    clusters: Clusters | None = None

    @classmethod
    def of(cls, groups: Groups, most: float | None = None) -> Documents:
        """Return the usable answers of both groups as documents; of many answers, a sample (see `sampled`).

        A stratum with one group is left out because a permutation of group labels within it changes nothing.

        Raises:
            NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` usable answers in strata with both groups, or none
                of the group's documents contains a word.
        """
        indices = sampled(groups, most)
        texts = chunks_of((text_of(groups.answers[index]) for index in indices), AT_ONCE)
        words = WordCounts.joined(map_chunks(partial(_counted, anonymize=anonymizer(groups.probe)), texts))
        marked, strata, names = sides_and_strata(groups, indices)
        for side, name in ((marked, groups.marked_name), (~marked, groups.unmarked_name)):
            if not words.lengths[side].any():
                raise NotMeasurable(
                    f"the answers for {name} have no words besides identity terms, such as the names of the groups; "
                    "check that these texts are the answers, and that `anonymize` does not remove too many terms"
                )
        embeddings = tuple(groups.answers[index].embedding for index in indices)
        return cls(
            words=words,
            marked=marked,
            strata=strata,
            stratum_names=names,
            embeddings=embeddings,
            current=np.ones(len(indices), dtype=np.bool_),
            names=groups.names,
            samples=groups.samples(indices, lambda: words),
        )

    @classmethod
    def joined(cls, current: Documents, baseline: Documents) -> Documents:
        """Join both runs; strata of the same name become one stratum."""
        names, strata = numbered([run.stratum_names[number] for run in (current, baseline) for number in run.strata])
        return cls(
            words=WordCounts.joined([current.words, baseline.words]),
            marked=np.concatenate([current.marked, baseline.marked]),
            strata=strata,
            stratum_names=names,
            embeddings=(*current.embeddings, *baseline.embeddings),
            current=np.repeat([True, False], [len(current.marked), len(baseline.marked)]),
            names=current.names,
        )

    @property
    def cells(self) -> Ints:
        """Return the number of each document's cell (group within stratum)."""
        return self.strata * 2 + self.marked

    def by_sample(self) -> list[Documents]:
        """Return the documents with each kind of clusters by which they are tested; themselves if there is none."""
        return [replace(self, clusters=clusters) for clusters in self.samples.values()] or [self]

    def merged(self) -> Documents:
        """Return the documents with one document, which has the words of all, for each cluster."""
        if self.clusters is None:
            return self
        clusters = self.clusters
        return replace(
            self,
            words=WordCounts(self.words.words, clusters.membership @ self.words.counts),
            marked=clusters.marked,
            strata=clusters.strata,
            stratum_names=clusters.stratum_names(self.stratum_names, self.strata),
            embeddings=(None,) * len(clusters.marked),
            current=np.ones(len(clusters.marked), dtype=np.bool_),
            samples={},
            clusters=None,
        )

    def sample_sizes(self, without: Mapping[str, Floats] | None = None) -> tuple[SampleSize, ...]:
        """Return the size of the sample for each kind of clusters; see `word_counts.sample_sizes`."""

        def kernel(indices: Ints) -> Floats:
            return similarities(self.words.only(indices))

        return sample_sizes(self.samples, self.strata, self.names, kernel, without or {})

    def only(self, indices: Ints) -> Documents:
        """Return the documents with these indices."""
        return replace(
            self,
            words=self.words.only(indices),
            marked=self.marked[indices],
            strata=self.strata[indices],
            embeddings=tuple(self.embeddings[index] for index in indices),
            current=self.current[indices],
            clusters=None if self.clusters is None else self.clusters.only(indices),
        )


def of_runs(current: Documents, baseline: Documents) -> tuple[Documents, Documents]:
    """Return the documents of two runs that are compared; near-copies of both runs are one document each.

    Other clusters, such as names, are the same in both runs, so that a change is about them and each document counts.
    """
    if NEAR_COPIES in current.samples and NEAR_COPIES in baseline.samples:
        current, baseline = (replace(run, clusters=run.samples[NEAR_COPIES]).merged() for run in (current, baseline))
    return current, baseline


def _counted(texts: Sequence[str], anonymize: Anonymizer) -> WordCounts:
    return WordCounts.of(map(anonymize.words, texts))


def text_of(answer: Answer) -> str:
    """Return the text of a usable answer; a list has one line for each item."""
    # One line for each item, so that words of two items are not neighbours, and no identity term spans two items.
    return "\n".join(answer.content) if isinstance(answer.content, list) else str(answer.content)


def anonymizer(probe: GenerationProbe) -> Anonymizer:
    """Return the anonymizer of axis values, swapped and listed terms and first names, unless the probe disables it."""
    if probe.removed_terms is None:
        return Anonymizer((), probe.language, enabled=False)
    values = {value for axis in probe.axes.values() for value in (*axis.values, *axis.texts)}
    # A first name that is also a word, such as Grace, is removed only where it is written as a name.
    names = {
        term
        for term in probe.swapped_terms.union(*(axis.texts for axis in probe.axes.values() if axis.names))
        if term[0].isupper() and term.casefold() in identity_terms.also_words()
    }
    return Anonymizer(
        [*sorted(values - names), *probe.removed_terms],
        probe.language,
        # The probe's own terms are removed even if they are generic, such as "person".
        phrases=[*sorted(probe.swapped_terms - names), *probe.removed_terms],
        names=probe.removed_names | identity_terms.name_forms(names),
    )


# The answers of an item's marked and unmarked group, in a fixed order, with their strata.

TextItem = AuditItem[GenerationProbe, SettingsT]
"""An item of an audit of texts about groups."""

SHARED_STRATA = 0.80
"""Smallest share of each run's answers that must be in strata of both runs."""
MINIMUM_DOCUMENTS = LEAST_ANSWERS
"""Smallest number of usable answers of each group that can be measured."""
MOST_DOCUMENTS = 2**15
"""Largest number of answers of each group of a run whose texts are compared; of more, a random sample is compared."""


def compared_labels(item: TextItem[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels of the marked and of the unmarked group, as `{"race": "Black"}` and `{"race": "White"}`.

    The unmarked group of an intersection has the unmarked value of each axis. Labels that name no axis are left out.
    """
    marked = {name: value for name, value in item.labels.items() if name in item.probe.axes}
    return marked, {name: item.probe.axes[name].unmarked for name in marked}


def has_values(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels[name] == value for name, value in wanted.items())


@dataclass(frozen=True)
class Groups:
    """The answers of one item, in a fixed order, with their groups and strata.

    Attributes:
        probe: probe of the item.
        answers: the answers in a fixed order, without copies; see `without_repeats`.
        marked: for each answer, whether it belongs to the marked group.
        strata: for each answer, the name of its stratum: its prompt and its values on the other axes.
        marked_name, unmarked_name: names of the two groups: the value of the axis, or the values of all axes of an
            intersection ("Black woman").
        repetition: concerns about repeated answers.
        seed: seed of the item, by which answers are sampled.
        observations_per_answer: see `answer_checks.Copies`; below 1 only if copies were kept.
        units: for each kind of unit that the probe declares as a sample, the unit of each answer.
    """

    probe: GenerationProbe
    answers: tuple[Answer, ...]
    marked: tuple[bool, ...]
    strata: tuple[str, ...]
    marked_name: str
    unmarked_name: str
    repetition: list[Concern] = field(default_factory=list)
    seed: str = ""
    observations_per_answer: float = 1.0
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, item: TextItem[Any], answers: Answers, *, with_copies: bool = False, axis: str | None = None) -> Groups:
        """Return the answers of an item's two groups; an answer's other labels, such as its prompt, name its stratum.

        With `axis`, only the answers of the marked group, and those with the unmarked value of this axis, are taken:
        Black women are compared with White people of all genders, or with men of all races. For `with_copies`, see
        `without_repeats`.
        """
        marked, unmarked = compared_labels(item)
        if axis is not None:
            unmarked = {axis: unmarked[axis]}
            answers = [each for each in answers if has_values(each.labels, marked) or has_values(each.labels, unmarked)]
        # Answers of a file share their labels, which are therefore sorted once for all of these answers.
        labels = {id(answer.labels): answer.labels for answer in answers}
        order = {number: sorted(own.items()) for number, own in labels.items()}
        is_marked = {number: has_values(own, marked) for number, own in labels.items()}
        units = {
            unit: label
            for unit, label in item.probe.unit_labels.items()
            if any(label in own for own in labels.values())
        }
        of_group = {*marked, *map(name_label, marked)}
        of_group |= {label for label in units.values() if not _in_both_groups(label, labels, is_marked)}
        strata = {
            number: sys.intern("; ".join(f"{name}={label}" for name, label in own if name not in of_group))
            for number, own in order.items()
        }
        ordered = sorted(answers, key=lambda answer: (order[id(answer.labels)], answer.trial, answer.text or ""))
        groups = cls(
            probe=item.probe,
            answers=tuple(ordered),
            marked=tuple(is_marked[id(answer.labels)] for answer in ordered),
            strata=tuple(strata[id(answer.labels)] for answer in ordered),
            marked_name=_shown(item, marked),
            unmarked_name=_shown(item, unmarked),
            seed=item.seed,
            units={unit: tuple(answer.labels.get(label, "") for answer in ordered) for unit, label in units.items()},
        )
        return groups.without_repeats(with_copies=with_copies)

    def without_repeats(self, *, with_copies: bool) -> Groups:
        """Return the groups without answers that repeat another answer; `repetition` says so.

        - The rows of a recorded file that holds all its rows several times count once.
        - If all trials repeat the same answer, one answer for each prompt and group is left. All answers are kept if a
          group would have too few single answers for a test.
        - If each group has enough prompts, equal answers to one prompt count once; see `Copies`. Of a recorded
          file, this needs a column of prompts: other rows with equal texts may be answers to different prompts.

        With `with_copies`, equal answers to one prompt are kept, and `observations_per_answer` is set instead: for
        shares of answers, which an answer that is left out would change.
        """
        recorded = self.probe.responses is not None
        if recorded and (times := answer_checks.times_copied(self._texts(rows := self._cells(unread=True)))) > 1:
            once = self._only([cell[: len(cell) // times] for cell in rows]).without_repeats(with_copies=with_copies)
            message = f"all {len(self.answers) // times:,} rows occur {times} times in the same order; each counts once"
            note = Concern("copied_rows", message, withholds="nothing")
            return replace(once, repetition=[note, *once.repetition])
        cells = self._cells()
        texts, asked = self._texts(cells), sum(map(len, cells))
        of_marked = sum(self.marked[cell[0]] for cell in cells)
        enough = min(of_marked, len(cells) - of_marked) >= answer_checks.MINIMUM_OBSERVATIONS
        one_status = all(len({self.answers[index].status for index in cell}) == 1 for cell in cells)
        if one_status and answer_checks.repeats(texts, self.probe.sampling.temperature):
            concern = answer_checks.repeats_concern(len(cells), asked, enough=enough)
            return replace(self._only([cell[:1] for cell in cells]) if enough else self, repetition=[concern])
        if not enough or (recorded and any("prompt" not in answer.labels for answer in self.answers)):
            return self
        copies = answer_checks.Copies.of(texts)
        unread = [index for index, answer in enumerate(self.answers) if answer.text is None]
        kept = [[cell[place] for place in places] for cell, places in zip(cells, copies.kept, strict=True)]
        if (observations := sum(map(len, kept))) == asked:
            return self
        scale = copies.observations_per_answer if with_copies else 1.0
        number = round(asked * scale) if with_copies else observations
        message = f"answers to a prompt repeat each other, so that {asked:,} answers count as {number:,}"
        note = Concern("repeated_answers", message, withholds="nothing")
        once = self if with_copies else self._only([*kept, unread])
        return replace(once, repetition=[note], observations_per_answer=scale)

    def samples(self, indices: Sequence[int], words: Callable[[], WordCounts] | None = None) -> dict[str, Clusters]:
        """Return clusters of these answers by kind: the declared units or, without these, near-copies."""
        marked, strata, _ = sides_and_strata(self, indices)
        if self.units or self.probe.written_units or words is None:
            units = {unit: [own[index] for index in indices] for unit, own in self.units.items()}
            return {unit: Clusters.of(own, marked, strata) for unit, own in units.items()}
        too_few = any(concern.withholds == "test" for concern in self.repetition)
        # Rows of a file without prompts may be answers to one prompt if they are nearly equal.
        unknown = self.probe.responses is not None and "prompt" not in self.answers[0].labels
        copies = None if too_few else near_copies(words, marked, strata, by_text=unknown)
        return {} if copies is None else {NEAR_COPIES: copies}

    def _cells(self, *, unread: bool = False) -> list[list[int]]:
        """Return the indices of the answers of each prompt and group; those without text only if `unread` is set."""
        cells: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for index, answer in enumerate(self.answers):
            if unread or answer.text is not None:
                cells.setdefault(tuple(sorted(answer.labels.items())), []).append(index)
        return list(cells.values())

    def _texts(self, cells: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self.answers[index].text or "" for index in cell] for cell in cells]

    def _only(self, cells: Iterable[Iterable[int]]) -> Groups:
        indices = sorted(index for cell in cells for index in cell)
        return replace(
            self,
            answers=tuple(self.answers[index] for index in indices),
            marked=tuple(self.marked[index] for index in indices),
            strata=tuple(self.strata[index] for index in indices),
            units={unit: tuple(own[index] for index in indices) for unit, own in self.units.items()},
        )

    def count(self, *statuses: Status) -> dict[str, int]:
        """Return the numbers of answers with one of these statuses, by group."""
        marked = [own for answer, own in zip(self.answers, self.marked, strict=True) if answer.status in statuses]
        return {self.marked_name: sum(marked), self.unmarked_name: len(marked) - sum(marked)}

    def one_sided(self) -> dict[str, int]:
        """Return the strata in which only one group has usable answers, with their number."""
        sides: dict[str, list[bool]] = {}
        for answer, marked, stratum in zip(self.answers, self.marked, self.strata, strict=True):
            if answer.usable:
                sides.setdefault(stratum, []).append(marked)
        return {stratum: len(marked) for stratum, marked in sides.items() if len({*marked}) == 1}

    @property
    def names(self) -> tuple[str, str]:
        return self.marked_name, self.unmarked_name

    @property
    def usable(self) -> dict[str, int]:
        return self.count(Status.OK)

    @property
    def missing(self) -> dict[str, int]:
        return self.count(*MISSING)


def _in_both_groups(label: str, labels: Mapping[int, Mapping[str, str]], is_marked: Mapping[int, bool]) -> bool:
    """Return whether most values of a label occur in both groups, as prompts do, and not in one, as names do."""
    sides: dict[str, set[bool]] = {}
    for number, own in labels.items():
        sides.setdefault(own.get(label, ""), set()).add(is_marked[number])
    return 2 * sum(len(own) == 2 for own in sides.values()) > len(sides)


def _shown(item: TextItem[Any], labels: Mapping[str, str]) -> str:
    """Return the name of a group; that of a group of few names is these names, because nothing is known of others."""
    names = [item.probe.axes[axis].names.get(value, ()) for axis, value in labels.items()]
    return " ".join(
        ", ".join(own) if 0 < len(own) < FEWEST_NAMES else value
        for own, value in zip(names, labels.values(), strict=True)
    )


def is_compared(item: TextItem[Any], labels: Mapping[str, str]) -> bool:
    """Return whether the labels belong to the marked group, or to the unmarked group of an axis."""
    marked, unmarked = compared_labels(item)
    return has_values(labels, marked) or any(labels[axis] == value for axis, value in unmarked.items())


def groups_by_axis(item: TextItem[Any], answers: Answers) -> dict[str, Groups]:
    """Return, for each axis, the answers of the marked group and of the unmarked group of that axis."""
    return {axis: Groups.of(item, answers, axis=axis) for axis in compared_labels(item)[1]}


def groups_of_runs(
    item: TextItem[Any], current: Answers, baseline: Answers, *, with_copies: bool = False
) -> tuple[Groups, Groups]:
    """Return the groups of the current run and of the baseline; see `Groups.of` and `require_common_strata`."""
    now, before = (Groups.of(item, run, with_copies=with_copies) for run in (current, baseline))
    require_common_strata(now, before)
    return now, before


def require_common_strata(current: Groups, baseline: Groups) -> None:
    """Raise `BaselineStale` if more than a fifth of a run's answers are in strata that the other run does not have."""
    shared = {*current.strata} & {*baseline.strata}
    for run in (current, baseline):
        if sum(stratum in shared for stratum in run.strata) < SHARED_STRATA * len(run.strata):
            raise BaselineStale(["list of prompts or strata"])


def require_usable_answers(groups: Groups) -> None:
    """Raise `NotMeasurable`, with the reasons of missing answers, if a group has too few usable ones."""
    short = {name: n for name, n in groups.usable.items() if n < MINIMUM_DOCUMENTS}
    if not short:
        return
    statuses = Counter(answer.status for answer in groups.answers)
    reasons = ", ".join(f"{statuses[status]} {status.value}" for status in MISSING if statuses[status])
    have = ", ".join(f"{n} for {name}" for name, n in short.items())
    asked, remedy = len(groups.answers), "Raise `trials`, or add rows"
    remedy = f"Check the missing answers: {reasons} (of {asked})" if reasons else remedy
    raise NotMeasurable(
        f"too few usable answers ({have}); each group needs {MINIMUM_DOCUMENTS}. {remedy}.", unusable=bool(reasons)
    )


def sides_and_strata(groups: Groups, indices: Sequence[int]) -> tuple[Bools, Ints, tuple[str, ...]]:
    """Return which of these answers are marked, their stratum numbers, and the names of all strata."""
    names, strata = numbered([groups.strata[index] for index in indices])
    return np.array([groups.marked[index] for index in indices], dtype=np.bool_), strata, names


def comparable(groups: Groups) -> list[int]:
    """Return the indices of usable answers in strata with both groups, at least `MINIMUM_DOCUMENTS` of each.

    Raises:
        NotMeasurable: a group has fewer such answers.
    """
    require_usable_answers(groups)
    one_sided = groups.one_sided()
    indices = [
        index
        for index, (answer, stratum) in enumerate(zip(groups.answers, groups.strata, strict=True))
        if answer.usable and stratum not in one_sided
    ]
    marked = sum(groups.marked[index] for index in indices)
    if min(marked, len(indices) - marked) < MINIMUM_DOCUMENTS:
        raise NotMeasurable(
            f"only {marked} answers for {groups.marked_name} and {len(indices) - marked} for {groups.unmarked_name} "
            f"are in strata that hold both groups; each group needs {MINIMUM_DOCUMENTS}. {len(one_sided)} strata hold "
            f"only one group, such as {min(one_sided)!r}: check whether a `strata` column names the group",
            permanent=not indices,
        )
    return indices


def sampled(groups: Groups, most: float | None = None) -> list[int]:
    """Return the indices of the answers whose texts are compared: `comparable`, at most `most` of each group.

    By default, `most` is `MOST_DOCUMENTS`. A larger group is sampled at random, seeded by the item's id, so that each
    stratum keeps its share of the group. The strata are drawn in one order for both groups: if each stratum has one
    answer of each group, whole strata are kept.

    Raises:
        NotMeasurable: as `comparable`.
    """
    most = most or MOST_DOCUMENTS
    indices = np.array(comparable(groups))
    marked, strata, names = sides_and_strata(groups, indices.tolist())
    if max(marked.sum(), (~marked).sum()) <= most:
        return list(indices.tolist())
    random = resampling.generator(f"{groups.seed}/sample")
    place, offset = random.permutation(len(names))[strata], random.random()
    kept = []
    for side in (np.flatnonzero(marked), np.flatnonzero(~marked)):
        ordered = side[np.lexsort((random.random(len(side)), place[side]))]
        size = int(min(len(side), most))
        kept.append(ordered[((np.arange(size) + offset) * len(side) / size).astype(np.int64)])
    return list(indices[np.sort(np.concatenate(kept))].tolist())


# Words of two groups' texts: how often each group uses a word, which group uses it more, and the strongest words.
#
# The side of a word (the group that uses it more) always comes from counts, never from the sign of a weight: a word
# that occurs together with other words can get a weight of either sign in a classifier.

SIDES = ("marked", "unmarked")
"""Names of the two groups in details."""
SHOWN_WORDS = 10
"""Number of words of each group that the details `top_words` and `function_words` show."""
DECIMALS = 12
"""Numbers are rounded to this many decimals before they are compared, because of floating-point errors."""


@dataclass(frozen=True)
class Usage:
    """Uses of words in the texts of two groups; the marked group comes first.

    Attributes:
        words: the words.
        uses: (2, words) number of occurrences in the group's texts.
        texts: (2, words) number of the group's texts that contain the word.
        rates: (2, words) occurrences of the word as a share of all words of the group's texts.
        sizes: (2,) number of texts of each group.
    """

    words: Sequence[str]
    uses: Ints
    texts: Ints
    rates: Floats
    sizes: Ints

    @classmethod
    def of(cls, texts: WordCounts, marked: Bools, words: Sequence[str]) -> Usage:
        columns = np.searchsorted(texts.words, words) if len(words) else np.zeros(0, np.int64)
        sides = [WordCounts(texts.words, texts.counts[np.flatnonzero(side)]) for side in (marked, ~marked)]
        uses = np.array([side.counts.sum(axis=0)[columns] for side in sides], dtype=np.int64)
        totals = np.array([side.lengths.sum() for side in sides])
        return cls(
            words=words,
            uses=uses,
            texts=np.array([side.holding[columns] for side in sides]),
            rates=uses / np.maximum(totals, 1)[:, None],
            sizes=np.array([len(side.lengths) for side in sides]),
        )

    @cached_property
    def sides(self) -> Ints:
        """Return the side of each word: 1 if the marked group uses it more, −1 if the unmarked group does, else 0.

        A group uses a word more by its rate or, if rates are equal, by the share of texts that contain it.
        """
        by_rate, by_share = (
            np.sign(np.round(numbers[0] - numbers[1], DECIMALS)) for numbers in (self.rates, self.shares)
        )
        return np.asarray(np.where(by_rate == 0, by_share, by_rate), dtype=np.int64)

    @property
    def shares(self) -> Floats:
        """Return the (2, words) shares of each group's texts that contain the word."""
        return np.asarray(self.texts / self.sizes[:, None])

    def signed(self, strengths: Floats) -> Floats:
        """Return the sizes of the words' numbers: above 0 for the marked group's words, below 0 for the unmarked's."""
        return np.asarray(self.sides * np.abs(strengths))

    def rows(
        self, statistic: str, strengths: Floats, names: tuple[str, str], significant: Collection[str] | None = None
    ) -> list[dict[str, Json]]:
        """Return rows of the exported word table, the largest number first; the signs of the strengths do not matter.

        `significant` is `None` if words are not tested individually.
        """
        values = self.signed(strengths)
        return [
            {
                "word": self.words[index],
                "side": {1: names[0], -1: names[1]}.get(int(self.sides[index])),
                "statistic": statistic,
                "value": float(values[index]) + 0.0,  # no -0.0
                "significant": None if significant is None else self.words[index] in significant,
                **dict(zip(SIDES, names, strict=True)),
                **{
                    f"{name}_{side}": numbers[group, index].item()
                    for name, numbers in (("uses", self.uses), ("texts", self.texts), ("share", self.shares))
                    for group, side in enumerate(SIDES)
                },
            }
            for index in order_by_strength(self.words, np.abs(values))
        ]


# Words of a result as the answers write them; audits count words that are case-folded.


def as_written(found: Json, probe: Probe, answers: Answers) -> Json:
    """Return details or rows with each `word` as the answers write it most often; ties: the first in sorted order."""
    if not isinstance(probe, GenerationProbe) or not _names_words(found):
        return found
    written = Counter[str]()
    for answer in answers:
        if answer.usable:
            written.update(probe.language.words(normalise(text_of(answer), fold=False)))
    spellings = {word.casefold(): word for word in sorted(written, key=lambda word: (-written[word], word))[::-1]}
    return _respelled(found, spellings)


def _names_words(found: Json) -> bool:
    if isinstance(found, Mapping):
        return "word" in found or any(map(_names_words, found.values()))
    return isinstance(found, list | tuple) and any(map(_names_words, found))


def _respelled(found: Json, spellings: Mapping[str, str]) -> Json:
    if isinstance(found, Mapping):
        return {
            key: spellings.get(part, part) if key == "word" else _respelled(part, spellings)
            for key, part in found.items()
        }
    return [_respelled(part, spellings) for part in found] if isinstance(found, list | tuple) else found


def strongest_words(words: Sequence[str], weights: Floats, language: Language) -> dict[str, Json]:
    """Return the details `top_words`, `function_words` and `function_word_share`.

    `top_words` and `function_words` hold the content words and the function words (such as "the") with the largest
    weights for each group, the strongest first. `function_word_share` is the share of function words in the sum of all
    absolute weights. A weight is above 0 for a word of the marked group, below 0 for the unmarked one.
    """
    function = np.array([language.is_function_word(word) for word in words], dtype=np.bool_)
    strength = np.abs(weights)
    return {
        "top_words": _strongest(words, np.where(function, 0.0, weights)),
        "function_words": _strongest(words, np.where(function, weights, 0.0)),
        "function_word_share": float(strength[function].sum() / strength.sum()) if strength.any() else 0.0,
    }


def _strongest(words: Sequence[str], weights: Floats) -> dict[str, list[dict[str, Json]]]:
    return {
        side: [
            {"word": words[index], "weight": float(strength[index])}
            for index in order_by_strength(words, strength)[:SHOWN_WORDS]
            if strength[index] > intervals.ROUNDING
        ]
        for side, strength in zip(SIDES, (weights, -weights), strict=True)
    }


def order_by_strength(words: Sequence[str], strength: Floats) -> Ints:
    """Sort by decreasing strength, then alphabetically."""
    return np.lexsort((np.asarray(words), -np.round(strength, DECIMALS))).astype(np.int64)


# The language of measured texts, in the details of a measurement; English is not named.


def language_details(probe: Probe) -> dict[str, Json]:
    """Return the detail `languages`, the codes of the probe's languages, unless the only one is English."""
    return {} if probe.language.codes == ENGLISH.codes else {"languages": list(probe.language.codes)}


def language_of(details: Mapping[str, Json]) -> Language:
    """Return the language of a measurement's texts, without words that the probe adds to it."""
    return language(*details.get("languages", ENGLISH.codes))
