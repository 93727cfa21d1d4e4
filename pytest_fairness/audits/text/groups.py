"""The answers of an item's marked and unmarked group, in a fixed order, with their strata."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_fairness.audits.answer_checks import repeats
from pytest_fairness.audits.base import AuditItem, SettingsT
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.probes.generation.swapped_prompts import LEAST_ANSWERS
from pytest_fairness.records import MISSING, Answer, Answers, Concern, Status
from pytest_fairness.stats.arrays import Bools, Ints, numbered
from pytest_fairness.stats.resampling import randomness

TextItem = AuditItem[GenerationProbe, SettingsT]
"""An item of an audit of texts about groups."""

SHARED_STRATA = 0.80
"""Smallest share of each run's answers that must be in strata of both runs."""
MINIMUM_DOCUMENTS = LEAST_ANSWERS
"""Smallest number of usable answers of each group that can be measured."""
MOST_DOCUMENTS = 2**15
"""Largest number of answers of each group of a run whose texts are compared; of more, a random sample is compared."""


def compared_labels(item: TextItem[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels of an item's marked and of its unmarked group: `{"race": "Black"}`, `{"race": "White"}`.

    An intersection has several axes; its unmarked group has the unmarked value of each axis. Labels of the item that
    name no axis are left out.
    """
    marked = {name: value for name, value in item.labels.items() if name in item.probe.axes}
    return marked, {name: item.probe.axes[name].unmarked for name in marked}


def has_values(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether the labels have all values in `wanted`."""
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
        observations_per_answer: see `repeats.Copies`; below 1 only if copies were kept.
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

    @classmethod
    def of(cls, item: TextItem[Any], answers: Answers, *, with_copies: bool = False) -> Groups:
        """Return the answers of an item, split into its two groups; for `with_copies`, see `without_repeats`."""
        marked, unmarked = compared_labels(item)
        unmarked_name = " ".join(unmarked.values())
        found = cls.split(item.probe, answers, marked, unmarked_name, with_copies=with_copies)
        return replace(found, seed=item.seed)

    @classmethod
    def split(
        cls,
        probe: GenerationProbe,
        answers: Answers,
        marked: Mapping[str, str],
        unmarked_name: str,
        *,
        with_copies: bool = False,
    ) -> Groups:
        """Return the answers, split into two groups.

        Args:
            probe: probe of the answers.
            answers: answers of both groups, in any order.
            marked: labels of the marked group, such as `{"race": "Black"}`; all other answers belong to the unmarked
                group. The other labels of an answer, such as its prompt, form the name of its stratum.
            unmarked_name: name of the unmarked group.
            with_copies: see `without_repeats`.
        """
        # Answers of a file share their labels, which are therefore sorted once for all of these answers.
        labels = {id(answer.labels): answer.labels for answer in answers}
        order = {number: sorted(own.items()) for number, own in labels.items()}
        strata = {
            number: sys.intern("; ".join(f"{name}={label}" for name, label in own if name not in marked))
            for number, own in order.items()
        }
        is_marked = {number: has_values(own, marked) for number, own in labels.items()}
        ordered = sorted(answers, key=lambda answer: (order[id(answer.labels)], answer.trial, answer.text or ""))
        groups = cls(
            probe=probe,
            answers=tuple(ordered),
            marked=tuple(is_marked[id(answer.labels)] for answer in ordered),
            strata=tuple(strata[id(answer.labels)] for answer in ordered),
            marked_name=" ".join(marked.values()),
            unmarked_name=unmarked_name,
        )
        return groups.without_repeats(with_copies=with_copies)

    def without_repeats(self, *, with_copies: bool) -> Groups:
        """Return the groups without answers that repeat another answer; `repetition` says so.

        - The rows of a recorded file that holds all its rows several times count once.
        - If all trials repeat the same answer, one answer for each prompt and group is left. All answers are kept if a
          group would have too few single answers for a test.
        - If each group has enough prompts, equal answers to one prompt count once; see `repeats.Copies`. Of a recorded
          file, this needs a column of prompts: other rows with equal texts may be answers to different prompts.

        Args:
            with_copies: whether equal answers to one prompt are kept, and `observations_per_answer` is set instead; for
                shares of answers, which an answer that is left out would change.
        """
        recorded = self.probe.responses is not None
        if recorded and (times := repeats.times_copied(self._texts(rows := self._cells(unread=True)))) > 1:
            once = self._only([cell[: len(cell) // times] for cell in rows]).without_repeats(with_copies=with_copies)
            note = repeats.copied_rows_concern(len(self.answers) // times, times)
            return replace(once, repetition=[note, *once.repetition])
        cells = self._cells()
        texts, asked = self._texts(cells), sum(map(len, cells))
        of_marked = sum(self.marked[cell[0]] for cell in cells)
        enough = min(of_marked, len(cells) - of_marked) >= repeats.MINIMUM_OBSERVATIONS
        one_status = all(len({self.answers[index].status for index in cell}) == 1 for cell in cells)
        if one_status and repeats.repeats(texts, self.probe.sampling.temperature):
            concern = repeats.concern_of(len(cells), asked, enough=enough)
            return replace(self._only([cell[:1] for cell in cells]) if enough else self, repetition=[concern])
        if not enough or (recorded and any("prompt" not in answer.labels for answer in self.answers)):
            return self
        copies = repeats.Copies.of(texts)
        unread = [index for index, answer in enumerate(self.answers) if answer.text is None]
        kept = [[cell[place] for place in places] for cell, places in zip(cells, copies.kept, strict=True)]
        if (observations := sum(map(len, kept))) == asked:
            return self
        if with_copies:
            note = repeats.copies_concern(asked, round(asked * copies.observations_per_answer))
            return replace(self, repetition=[note], observations_per_answer=copies.observations_per_answer)
        return replace(self._only([*kept, unread]), repetition=[repeats.copies_concern(asked, observations)])

    def _cells(self, *, unread: bool = False) -> list[list[int]]:
        """Return the indices of the answers of each prompt and group; answers without text only if `unread` is set."""
        cells: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for index, answer in enumerate(self.answers):
            if unread or answer.text is not None:
                cells.setdefault(tuple(sorted(answer.labels.items())), []).append(index)
        return list(cells.values())

    def _texts(self, cells: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self.answers[index].text or "" for index in cell] for cell in cells]

    def _only(self, cells: Iterable[Iterable[int]]) -> Groups:
        """Return the groups with the answers at these indices only."""
        indices = sorted(index for cell in cells for index in cell)
        return replace(
            self,
            answers=tuple(self.answers[index] for index in indices),
            marked=tuple(self.marked[index] for index in indices),
            strata=tuple(self.strata[index] for index in indices),
        )

    def count(self, *statuses: Status) -> dict[str, int]:
        """Return the number of answers that have one of these statuses, by group."""
        counts = {self.marked_name: 0, self.unmarked_name: 0}
        for answer, marked in zip(self.answers, self.marked, strict=True):
            counts[self.marked_name if marked else self.unmarked_name] += answer.status in statuses
        return counts

    def one_sided(self) -> dict[str, int]:
        """Return the strata in which only one group has usable answers, with the number of these answers."""
        sides: dict[str, list[bool]] = {}
        for answer, marked, stratum in zip(self.answers, self.marked, self.strata, strict=True):
            if answer.usable:
                sides.setdefault(stratum, []).append(marked)
        return {stratum: len(marked) for stratum, marked in sides.items() if len({*marked}) == 1}

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of the marked and of the unmarked group."""
        return self.marked_name, self.unmarked_name

    @property
    def usable(self) -> dict[str, int]:
        """Return the number of usable answers by group."""
        return self.count(Status.OK)

    @property
    def missing(self) -> dict[str, int]:
        """Return the number of missing answers, by group."""
        return self.count(*MISSING)


def is_compared(item: TextItem[Any], labels: Mapping[str, str]) -> bool:
    """Return whether the labels belong to the item's marked group, or to the unmarked group of one of its axes."""
    marked, unmarked = compared_labels(item)
    return has_values(labels, marked) or any(labels[axis] == value for axis, value in unmarked.items())


def groups_by_axis(item: TextItem[Any], answers: Answers) -> dict[str, Groups]:
    """Return, for each axis, the answers of the marked group and of the unmarked group of that axis.

    For example, Black women are compared with White people of all genders, and with men of all races. Strata are formed
    by the prompt and by the axes that are not in the intersection.
    """
    marked, unmarked = compared_labels(item)
    return {
        axis: replace(
            Groups.split(
                item.probe,
                [each for each in answers if has_values(each.labels, marked) or each.labels[axis] == value],
                marked,
                value,
            ),
            seed=item.seed,
        )
        for axis, value in unmarked.items()
    }


def require_common_strata(current: Groups, baseline: Groups) -> None:
    """Raise `BaselineStale` if more than a fifth of a run's answers are in strata that the other run does not have."""
    shared = {*current.strata} & {*baseline.strata}
    for run in (current, baseline):
        if sum(stratum in shared for stratum in run.strata) < SHARED_STRATA * len(run.strata):
            raise BaselineStale(["list of prompts or strata"])


def names_of(groups: Mapping[str, Groups]) -> tuple[str, str]:
    """Return the name of the marked group, and the names of the unmarked groups of all axes as one text."""
    first, *_ = groups.values()
    return first.marked_name, ", ".join(each.unmarked_name for each in groups.values())


def require_usable_answers(groups: Groups) -> None:
    """Raise `NotMeasurable` if a group has too few usable answers; the message says why answers are missing."""
    short = {name: n for name, n in groups.usable.items() if n < MINIMUM_DOCUMENTS}
    if not short:
        return
    asked = len(groups.answers)
    reasons = ", ".join(
        f"{sum(groups.count(status).values())} {status.value}"
        for status in MISSING
        if sum(groups.count(status).values())
    )
    have = ", ".join(f"{n} for {name}" for name, n in short.items())
    remedy = f"Check the missing answers: {reasons} (of {asked})" if reasons else "Raise `trials`, or add rows"
    raise NotMeasurable(
        f"too few usable answers ({have}); each group needs {MINIMUM_DOCUMENTS}. {remedy}.", unusable=bool(reasons)
    )


def sides_and_strata(groups: Groups, indices: Sequence[int]) -> tuple[Bools, Ints, tuple[str, ...]]:
    """Return which of the answers at these indices are marked, their stratum numbers, and the names of all strata."""
    names, strata = numbered([groups.strata[index] for index in indices])
    return np.array([groups.marked[index] for index in indices], dtype=np.bool_), strata, names


def comparable(groups: Groups) -> list[int]:
    """Return the indices of the usable answers in strata that hold both groups.

    Raises:
        NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` such answers.
    """
    require_usable_answers(groups)
    one_sided = groups.one_sided()
    indices = [
        index
        for index, (answer, stratum) in enumerate(zip(groups.answers, groups.strata, strict=True))
        if answer.usable and stratum not in one_sided
    ]
    _require_both_sides(groups, indices, one_sided)
    return indices


def sampled(groups: Groups) -> list[int]:
    """Return the indices of the answers whose texts are compared: `comparable`, at most `MOST_DOCUMENTS` of each group.

    A larger group is sampled at random, seeded by the item's id, so that each stratum keeps its share of the group. The
    strata are drawn in one order for both groups: if each stratum has one answer of each group, whole strata are kept.

    Raises:
        NotMeasurable: a group has fewer than `MINIMUM_DOCUMENTS` usable answers in strata that hold both groups.
    """
    indices = np.array(comparable(groups))
    marked, strata, names = sides_and_strata(groups, indices.tolist())
    if max(marked.sum(), (~marked).sum()) <= MOST_DOCUMENTS:
        return list(indices.tolist())
    random = randomness.generator(f"{groups.seed}/sample")
    place, offset = random.permutation(len(names))[strata], random.random()
    kept = []
    for side in (np.flatnonzero(marked), np.flatnonzero(~marked)):
        ordered = side[np.lexsort((random.random(len(side)), place[side]))]
        size = min(len(side), MOST_DOCUMENTS)
        kept.append(ordered[((np.arange(size) + offset) * len(side) / size).astype(np.int64)])
    return list(indices[np.sort(np.concatenate(kept))].tolist())


def _require_both_sides(groups: Groups, indices: Sequence[int], one_sided: Mapping[str, int]) -> None:
    """Raise `NotMeasurable` if a group has too few answers in strata that hold both groups.

    Args:
        groups: all answers of the item.
        indices: indices of the answers in strata that hold both groups.
        one_sided: strata that hold only one group, with their numbers of answers.
    """
    marked = sum(groups.marked[index] for index in indices)
    if min(marked, len(indices) - marked) >= MINIMUM_DOCUMENTS:
        return
    raise NotMeasurable(
        f"only {marked} answers for {groups.marked_name} and {len(indices) - marked} for {groups.unmarked_name} are in "
        f"strata that hold both groups; each group needs {MINIMUM_DOCUMENTS}. {len(one_sided)} strata hold only one "
        f"group, such as {min(one_sided)!r}: check whether a `strata` column names the group",
        permanent=not indices,
    )
