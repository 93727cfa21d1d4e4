"""Recommended lists in comparable form, tables of them, and the base class of their audits."""

from __future__ import annotations

import math
import re
import statistics
import unicodedata
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, product
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pytest_fairness.audits.base import AuditItem, Example, SettingsT
from pytest_fairness.audits.info import (
    axis_of,
    details_of,
    listed,
    shortened,
)
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, Intersection, UnitAudit, UnitTable
from pytest_fairness.backends import chunks_of
from pytest_fairness.errors import NotMeasurable, ProbeError
from pytest_fairness.probes.recommendation import NEUTRAL, RecommendationProbe
from pytest_fairness.records import (
    MISSING,
    Answer,
    Answers,
    Concern,
    Explanation,
    ItemResult,
    Json,
    Measurement,
    Pair,
    Status,
)
from pytest_fairness.stats import ranked_lists, resampling
from pytest_fairness.stats.gaps import mean_and_interval
from pytest_fairness.stats.resampling import Floats, number_or_none
from pytest_fairness.stats.unit_statistics import LargestGap
from pytest_fairness.stats.unit_tables import SIGNS, UnitStatistic, needed_units

# Recommended lists in comparable form: at most k different normalised titles, with similar titles merged.

_RANK = re.compile(r"^\s*(?:[-*•]|#?\d{1,3}[.):])\s+")
_YEAR = re.compile(r"[(\[]\s*(?:18|19|20)\d\d\s*[)\]]")
_QUOTES = re.compile("[\"'`\u00b4\u2018-\u201f\u00ab\u00bb\u2032\u2033]")
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\S)")
_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=2**18)
def normalized(item: str) -> str:
    """Return a title in its normal form; different spellings of a title have the same normal form.

    The rules, in this order: Unicode NFKC; lower case (casefold); no leading rank or bullet; no year in brackets; no
    quotes or apostrophes; other punctuation and symbols as blanks; no leading "the", "a" or "an"; single blanks. If
    nothing remains (`÷`), the title is only case-folded.
    """
    folded = unicodedata.normalize("NFKC", item).casefold()
    bare = _QUOTES.sub("", _YEAR.sub(" ", _RANK.sub("", folded)))
    words = "".join(" " if unicodedata.category(letter)[0] in "PSZC" else letter for letter in bare)
    return _ARTICLE.sub("", " ".join(words.split())) or " ".join(folded.split())


def prepared(probe: RecommendationProbe, items: Iterable[str]) -> tuple[str, ...]:
    """Return the items, normalised if the probe asks for it, without empty and repeated ones."""
    prepared_items = map(normalized, items) if probe.normalize else (item for item in items if item.strip())
    return tuple(filter(None, dict.fromkeys(prepared_items)))


@dataclass(frozen=True, slots=True)
class RecommendedList:
    """One recommended list: the answer to one trial of a question.

    Attributes:
        entity, attribute, value, perturbation: labels of the question; empty for a missing label.
        trial: number of the trial.
        status: status of the answer; `UNREADABLE` for a list without items.
        items: at most k items, prepared for comparison; empty unless the status is `OK`.
        returned: number of different items that were returned, at most k.
        indirect: whether the list answers the indirect wording, because the direct wording was refused.
    """

    entity: str
    attribute: str
    value: str
    perturbation: str
    trial: int
    status: Status
    items: tuple[str, ...]
    returned: int
    indirect: bool

    @property
    def usable(self) -> bool:
        return self.status is Status.OK

    @property
    def group(self) -> str:
        return NEUTRAL if self.attribute == NEUTRAL else self.value


class Merge(NamedTuple):
    """Title that was replaced by a similar title of the same entity."""

    entity: str
    item: str
    into: str


ENTITIES_AT_ONCE = 500
"""Number of entities whose lists are in memory at the same time."""


@dataclass(frozen=True)
class Lists:
    """Lists prepared for comparison, sorted by question and trial; not every entity has a domain."""

    all: tuple[RecommendedList, ...]
    domains: Mapping[str, str]
    merges: tuple[Merge, ...]

    @classmethod
    def of(cls, probe: RecommendationProbe, answers: Iterable[Answer], *, direct_only: bool = False) -> Lists:
        """Return the lists of these answers, prepared as the probe's keys `k`, `normalize` and `fuzzy` say.

        A question may have been asked several times: again after a short list, or (unless `direct_only`) in the
        indirect wording after a refusal. The longest list then counts; of equally long lists, the first one.
        """
        asked: dict[tuple[str, str, str, str, int], list[Answer]] = {}
        domains: dict[str, str] = {}
        for answer in answers:
            labels = answer.labels
            if direct_only and labels.get("form"):
                continue
            question = labels["entity"], labels["attribute"], labels.get("value", ""), labels.get("perturbation", "")
            asked.setdefault((*question, answer.trial), []).append(answer)
            if labels.get("domain"):
                # If an entity has several domains, the alphabetically last one counts, so that the order of answers
                # does not matter.
                domains[labels["entity"]] = max(labels["domain"], domains.get(labels["entity"], ""))
        lists = []
        for key, attempts in sorted(asked.items(), key=lambda pair: pair[0]):
            ordered = sorted(attempts, key=_attempt) if len(attempts) > 1 else attempts
            contents = [tuple(answer.content) if answer.usable else () for answer in ordered]
            complete = [prepared(probe, items) for items in contents]
            returned = [min(probe.k, len(items)) for items in complete]
            best = max(range(len(ordered)), key=lambda index: (returned[index], ordered[index].usable, -index))
            answer, cut = ordered[best], len(contents[best]) > probe.k
            items = prepared(probe, contents[best][: probe.k]) if cut else complete[best]
            status = Status.UNREADABLE if answer.usable and not items else answer.status
            indirect = bool(items) and bool(answer.labels.get("form"))
            lists.append(RecommendedList(*key, status, items, returned[best], indirect))
        merges = [] if probe.fuzzy is None else _similar_titles(lists, probe.fuzzy)
        if merges:
            into = {(merge.entity, merge.item): merge.into for merge in merges}
            lists = [
                replace(each, items=tuple(dict.fromkeys(into.get((each.entity, item), item) for item in each.items)))
                for each in lists
            ]
        return cls(tuple(lists), domains, tuple(merges))

    @classmethod
    def parts(
        cls, probe: RecommendationProbe, answers: Iterable[Answer], *, direct_only: bool = False
    ) -> Iterator[Lists]:
        """Yield the lists of `of` in parts to save memory; each holds all lists of some entities."""
        by_entity: dict[str, list[Answer]] = {}
        for answer in answers:
            by_entity.setdefault(answer.labels["entity"], []).append(answer)
        for entities in chunks_of(sorted(by_entity), ENTITIES_AT_ONCE):
            own = chain.from_iterable(by_entity[entity] for entity in entities)
            yield cls.of(probe, own, direct_only=direct_only)

    @property
    def entities(self) -> tuple[str, ...]:
        return tuple(sorted({each.entity for each in self.all}))

    def of_group(self, attribute: str, perturbation: str = "") -> list[RecommendedList]:
        """Return the lists of an attribute, or of `NEUTRAL`; by default, only those for unperturbed questions."""
        return [each for each in self.all if (each.attribute, each.perturbation) == (attribute, perturbation)]


def _attempt(answer: Answer) -> tuple[object, ...]:
    labels = answer.labels
    # Direct questions come before indirect ones, and first questions before repeated ones.
    again = labels.get("form", ""), len(labels.get("requery", "")), labels.get("requery", "")
    return *again, answer.trial, sorted(labels.items()), answer.text or ""


def _similar_titles(lists: Iterable[RecommendedList], threshold: float) -> list[Merge]:
    """Return the titles of an entity that are to be replaced by a similar one.

    A title is replaced by a title of at least the similarity `threshold`, 0..1, that is more frequent or, if both are
    equally frequent, alphabetically first.
    """
    # Deferred, as few probes merge titles.
    from rapidfuzz import fuzz, process

    mentions: dict[str, Counter[str]] = {}
    for each in lists:
        mentions.setdefault(each.entity, Counter()).update(each.items)
    merges = []
    for entity, titles in sorted(mentions.items()):
        distinct: list[str] = []
        for title in sorted(titles, key=lambda title: (-titles[title], title)):
            # Titles with different numbers, "Part 2" and "Part 3", are never the same.
            same_numbers = [other for other in distinct if _NUMBER.findall(other) == _NUMBER.findall(title)]
            similar = process.extractOne(title, same_numbers, scorer=fuzz.ratio, score_cutoff=100 * threshold)
            if similar is None:
                distinct.append(title)
            else:
                merges.append(Merge(entity, title, similar[0]))
    return merges


def relevant_items(probe: RecommendationProbe, lists: Lists) -> dict[str, tuple[str, ...]]:
    """Return the relevant items of each entity, prepared like the lists; an entity may have none."""
    relevant = {entity: prepared(probe, (probe.relevant or {}).get(entity, ())) for entity in lists.entities}
    # A title that was merged in the entity's lists is replaced here too.
    for merge in lists.merges:
        relevant[merge.entity] = tuple(merge.into if item == merge.item else item for item in relevant[merge.entity])
    return relevant


def qualities(
    probe: RecommendationProbe, relevant: Mapping[str, Sequence[str]], lists: Iterable[RecommendedList]
) -> list[tuple[RecommendedList, Sequence[float]]]:
    """Return the usable lists of entities with relevant items, each with its precision, recall and NDCG at k."""
    usable = [each for each in lists if each.usable and relevant[each.entity]]
    found = ranked_lists.quality([each.items for each in usable], [relevant[each.entity] for each in usable], probe.k)
    return list(zip(usable, zip(*(scores.tolist() for scores in found), strict=True), strict=True))


# Tables of one number for each entity and attribute value.


def usable_by(lists: Iterable[RecommendedList], *names: str) -> dict[Any, list[RecommendedList]]:
    """Return the usable lists, grouped by their attribute of this name, or by a tuple of several attributes."""
    key, found = attrgetter(*names), dict[Any, list[RecommendedList]]()
    for each in lists:
        if each.usable:
            found.setdefault(key(each), []).append(each)
    return found


@dataclass(frozen=True)
class Matrix(UnitTable):
    """A table of mean numbers over trials, for each entity (row) and attribute value (column).

    Attributes:
        domains: domain of each entity; entities without a domain are left out.
        measured: the numbers before `compared` completed the rows; `None` if the rows are not completed.
    """

    domains: Mapping[str, str] = field(default_factory=dict)
    measured: Floats | None = None

    @property
    def numbers(self) -> Floats:
        """Return the (entities, columns) measured numbers, before the rows were completed."""
        return self.rows if self.measured is None else self.measured

    def merged(self, clusters: Mapping[str, str], *, sums: bool) -> UnitTable:
        return UnitTable.merged(replace(self, measured=None), clusters, sums=sums)

    def compared(self, columns: Sequence[int]) -> Matrix:
        """Return the table of these columns with completed rows; see `stats.ranked_lists.complete_rows`.

        The detail `too_few` lists the other attribute values with their number of entities and their mean.
        """
        left_out: dict[str, Json] = {}
        for column, name in enumerate(self.columns):
            if column not in columns:
                own = self.rows[~np.isnan(self.rows[:, column]), column]
                left_out[name] = {"entities": len(own), "mean": float(own.mean()) if len(own) else None}
        names = ", ".join(f"{name} ({part['entities']} entities)" for name, part in left_out.items())
        note = f"not compared, because too few entities have a list: {names}"
        measured = self.rows[:, columns]
        return replace(
            self,
            columns=tuple(self.columns[column] for column in columns),
            rows=ranked_lists.complete_rows(measured),
            measured=measured,
            details={**self.details, **({"too_few": left_out} if left_out else {})},
            notes=[Concern("too_few_lists", note, withholds="nothing")] if left_out else [],
        )


class MatrixBuilder:
    """Numbers by entity and attribute value, and numbers of lists by group, collected from the parts of a run's lists.

    Args:
        values: values of the attribute, the columns of the table.
        groups: groups whose usable and missing lists are counted; by default, the values.
    """

    def __init__(self, values: Sequence[str], groups: Sequence[str] = ()) -> None:
        self.values, self.groups = tuple(values), tuple(groups) or tuple(values)
        self.numbers: dict[tuple[str, str], list[float]] = {}
        self.entities: set[str] = set()
        self.domains: dict[str, str] = {}
        self.merges: list[Merge] = []
        self._statuses, self._indirect = Counter[tuple[str, Status]](), Counter[str]()

    def parts(self, probe: RecommendationProbe, answers: Answers, *, direct_only: bool = False) -> Iterator[Lists]:
        """Yield the parts of `Lists.parts`; their domains and merged titles are kept."""
        for lists in Lists.parts(probe, answers, direct_only=direct_only):
            self.domains |= lists.domains
            self.merges += lists.merges
            yield lists

    def count(self, lists: Iterable[RecommendedList], group: str | None = None) -> None:
        """Count lists by group (by default, their own one) and status; their entities become rows."""
        for each in lists:
            self.entities.add(each.entity)
            self._statuses[each.group if group is None else group, each.status] += 1
            self._indirect[each.value] += each.indirect

    def lists(self, *statuses: Status) -> dict[str, int]:
        """Return the number of lists with one of these statuses, by group."""
        return {group: sum(self._statuses[group, status] for status in statuses) for group in self.groups}

    def matrix(
        self,
        details: Mapping[str, Json],
        usable: Sequence[Status] = (Status.OK,),
        missing: Sequence[Status] = MISSING,
    ) -> Matrix:
        """Return the table of means; NaN is no number. The details hold the merged titles as well."""
        units = tuple(sorted(self.entities))
        rows = np.full((len(units), len(self.values)), np.nan)
        for row, entity in enumerate(units):
            for column, value in enumerate(self.values):
                numbers = [number for number in self.numbers.get((entity, value), ()) if not math.isnan(number)]
                if numbers:
                    rows[row, column] = sum(numbers) / len(numbers)
        return Matrix(
            units,
            self.values,
            rows,
            self.lists(*usable),
            self.lists(*missing),
            {**details, "merged": [merge._asdict() for merge in self.merges]},
            domains=self.domains,
        )

    @property
    def indirect(self) -> dict[str, int]:
        """Return the number of lists that answer the indirect wording, by attribute value; empty if all are 0."""
        counts = {value: self._indirect[value] for value in self.values}
        return counts if any(counts.values()) else {}


# Base class of audits of recommended lists; the unit is the entity for which recommendations are requested.

ListItem = AuditItem[RecommendationProbe, SettingsT]
"""An item of an audit of lists."""

SHOWN_ENTITIES = 5
"""Largest number of changed entities in the details."""
LONGEST_ENTRY = 60
"""Largest number of characters of a list entry that a finding names."""


class ListAudit(UnitAudit[RecommendationProbe, SettingsT]):
    """Base class of audits that measure one number for each entity and each value of an attribute.

    The value is the largest minus the smallest of the values' means, unless `statistic` says otherwise.

    Class attributes:
        quantity: name of the measured number, such as `similarity`; the details hold the mean of each attribute value
            under this key.
        harmed: whether the attribute value with the `highest` or the `lowest` mean is the most disadvantaged; empty if
            the audit does not compare attribute values.
        label: label of an item that holds its subject.
        gap_phrase: in place of `phrase` if several values are compared; empty for the same one.
        noise_phrase: template of the part of the phrase that states the similarity of two neutral lists.
        depends_on_trials: whether the value of two runs is comparable at equal numbers of trials only. A range of
            several means is in any case: chance contributes less to it if there are more trials.
    """

    kind = "recommendation"
    counted = "entities"
    compares_sides = True
    usable = "have lists for at least two values"
    quantity: ClassVar[str]
    harmed: ClassVar[str] = ""
    label: ClassVar[str] = "attribute"
    gap_phrase: ClassVar[str] = ""
    noise_phrase: ClassVar[str] = "; noise floor {:.2f}"
    depends_on_trials: ClassVar[bool] = False

    @abstractmethod
    def matrix(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
        """Return a number for each entity (row) and attribute value (column); the order of answers has no influence."""

    def statistic(self, columns: int) -> UnitStatistic:
        return LargestGap(columns)

    def subjects(self, probe: RecommendationProbe, settings: SettingsT) -> Iterable[str | None]:
        """Return the subject of each item; `None` for an item of neutral lists."""
        return probe.attributes

    def items(self, probe: RecommendationProbe, settings: SettingsT) -> list[ListItem[SettingsT]]:
        return [
            AuditItem(probe, self.info.name, subject, {} if subject is None else {self.label: subject}, settings)
            for subject in self.subjects(probe, settings)
        ]

    def uses(self, item: ListItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to an unperturbed list, either neutral or for the item's attribute."""
        return not labels.get("perturbation") and labels["attribute"] in (NEUTRAL, item.labels["attribute"])

    def table(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
        matrix = self.matrix(item, answers)
        return matrix.compared(_compared_columns(item, matrix))

    def tables(self, item: ListItem[SettingsT], current: Answers, baseline: Answers) -> tuple[UnitTable, UnitTable]:
        """Return the tables of both runs, with the attribute values that have enough lists in both runs."""
        both = [self.matrix(item, run) for run in (current, baseline)]
        first, second = (_compared_columns(item, matrix) for matrix in both)
        shared = [column for column in first if column in second]
        if len(shared) < min(2, len(first)):
            raise NotMeasurable(
                "fewer than two values have enough lists in both runs. Check the missing answers, or rebaseline"
            )
        return both[0].compared(shared), both[1].compared(shared)

    def intersection(self, item: ListItem[SettingsT], table: UnitTable) -> Intersection | None:
        attribute = item.probe.attributes.get(item.labels.get("attribute", ""))
        if attribute is None or len(attribute.parts) < 2:
            return None
        labels = ([value.label for value in item.probe.attributes[part].values] for part in attribute.parts)
        cells = zip(attribute.values, product(*labels), strict=True)
        return Intersection(attribute.parts, tuple(cell for value, cell in cells if value.label in table.columns))

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the smallest p-value of all pairs of attribute values, by `resampling.sign_flips` of entities."""
        return min((pair.p_value for pair in self.pairs(table, random)), default=None)

    def pairs(self, table: UnitTable, random: np.random.Generator) -> tuple[Pair, ...]:
        """Return the difference of the means of each two attribute values, with interval and test.

        The two-sided p-value is from a sign-flip test over entities, adjusted for the number of pairs.
        """
        if len(table.columns) < 2:
            return ()
        contributions = ranked_lists.row_contributions(_numbers(table))
        tests = LargestGap(len(table.columns)).pair_tests(table.rows[table.complete], random, contributions)
        return self._named_pairs(table, tests)

    def effect_basis(self, table: UnitTable) -> Sequence[float]:
        """Return the standard deviation of each value's numbers over the entities."""
        return [float(column[~np.isnan(column)].std(ddof=1)) for column in _numbers(table).T]

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return the mean of each attribute value, the most disadvantaged value, and the means by domain and entity.

        Each mean is compared with the mean of all other attribute values. The one-sided p-value is from a sign-flip
        test over entities, adjusted for the number of attribute values; see `resampling.sign_flips`.
        """
        numbers, rows = _numbers(table), table.rows[table.complete]
        means: dict[str, dict[str, Json]] = {}
        for name, completed, measured in zip(table.columns, table.rows.T, numbers.T, strict=True):
            mean, interval = mean_and_interval(completed[~np.isnan(completed)])
            present = measured[~np.isnan(measured)]
            deviation = float(present.std(ddof=1))
            means[name] = {"mean": mean, "sd": deviation, "entities": len(present), "interval": list(interval)}
        details: dict[str, Json] = {self.quantity: means}
        if self.harmed and len(means) > 1:
            sign = 1 if self.harmed == "highest" else -1
            effects, signs = (
                each - (each.sum(axis=1, keepdims=True) - each) / (len(means) - 1)
                for each in (rows, ranked_lists.row_contributions(numbers))
            )
            p_values = resampling.sign_flips(sign * signs, SIGNS, random).tolist()
            for name, own, p_value in zip(means, effects.T, p_values, strict=True):
                effect, interval = mean_and_interval(own)
                means[name] |= {"effect": effect, "effect_interval": list(interval), "p_value": p_value}
            # Rounded, so that values that are equal except for rounding errors are a tie; the first of a tie is taken.
            worst = min(means, key=lambda name: (means[name]["p_value"], -round(sign * means[name]["effect"], 12)))
            details["worst"] = {"value": worst, **{key: means[worst][key] for key in ("effect", "p_value")}}
        if isinstance(table, Matrix) and table.domains:
            details["by_domain"] = {
                domain: self._domain_details(
                    table, numbers[[table.domains.get(each) == domain for each in table.units]]
                )
                for domain in sorted({*table.domains.values()})
            }
        details["by_entity"] = {
            entity: dict(zip(table.columns, map(number_or_none, row), strict=True))
            for entity, row in zip(table.units, numbers, strict=True)
        }
        return details

    def _domain_details(self, table: UnitTable, numbers: Floats) -> dict[str, Json]:
        """Return the audit's value and the means of values with lists, for the entities of a domain."""
        columns = ranked_lists.compared_columns(numbers, 1, 1)
        rows = ranked_lists.complete_rows(numbers[:, columns])
        rows = rows[~np.isnan(rows[:, 0])]
        means = rows.mean(axis=0) if len(rows) else np.empty(0)
        value = float(self.statistic(len(table.columns)).value(means)) if len(rows) else None
        names = [table.columns[column] for column in columns]
        return {"entities": len(rows), "value": value, self.quantity: dict(zip(names, means.tolist(), strict=False))}

    def comparable(self, item: ListItem[SettingsT], current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
        """Return the answers of both runs, if necessary cut to the same number of trials for each attribute."""
        values = {answer.labels.get("value") for answer in current if answer.labels["attribute"] != NEUTRAL}
        if not self.depends_on_trials and not self.statistic(max(2, len(values))).compares_several_pairs:
            return current, baseline
        # Sorted, so that the dictionary keeps the last trial of each attribute.
        of_current, of_baseline = (
            dict(sorted({(answer.labels["attribute"], answer.trial) for answer in run})) for run in (current, baseline)
        )
        last = {attribute: min(trial, of_baseline.get(attribute, -1)) for attribute, trial in of_current.items()}
        first, second = (
            [answer for answer in run if answer.trial <= last.get(answer.labels["attribute"], -1)]
            for run in (current, baseline)
        )
        return first, second

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> tuple[dict[str, Json], Sequence[str]]:
        """Return the values' means in both runs, and the entities that changed most.

        The value comes first whose change differs most from the mean of all changes. An entity's change is the largest
        distance between the change for one attribute value and the mean change for all attribute values; for a single
        attribute value, it is the absolute change.
        """
        changes, several = current - baseline, len(table.columns) > 1
        now, then = current.mean(axis=0).tolist(), baseline.mean(axis=0).tolist()
        moved = np.array(now) - np.array(then)
        # With only two values, both changes differ equally from the mean change; the larger change then comes first.
        apart = np.round(np.abs(moved - (moved.mean() if several else 0)), 12)
        order = sorted(range(len(now)), key=lambda column: (-apart[column], -round(abs(moved[column]), 12), column))
        sizes = np.abs(changes - (changes.mean(axis=1, keepdims=True) if several else 0)).max(axis=1).tolist()
        rows = sorted(range(len(units)), key=lambda row: (-round(sizes[row], 12), units[row]))
        entities = [(units[row], sizes[row]) for row in rows[:SHOWN_ENTITIES] if sizes[row] > 0]
        first = table.columns[order[0]] if several else "mean"
        return (
            {
                "moved": [
                    {"value": table.columns[column], "now": now[column], "then": then[column]} for column in order
                ],
                "moved_entities": [{"entity": name, "change": change} for name, change in entities],
            },
            [f"{first} {then[order[0]]:.2f} to {now[order[0]]:.2f}", *(name for name, _ in entities[:3])],
        )

    def explanation(self, item: ListItem[SettingsT], measurement: Measurement) -> Explanation:
        worst, floor = measurement.details.get("worst"), measurement.details.get("noise_floor")
        means = {value: part["mean"] for value, part in measurement.details[self.quantity].items()}
        (low, least), (high, most) = (choose((mean, value) for value, mean in means.items()) for choose in (min, max))
        phrase = (worst and self.gap_phrase) or self.phrase
        said = phrase.format(
            value=measurement.value,
            name=self.info.name.upper(),
            measure=getattr(item.settings, "similarity", ""),
            least=least,
            low=low,
            most=most,
            high=high,
            worst=worst and worst["value"],
            instability=measurement.details.get("instability"),
            noise="" if floor is None else self.noise_phrase.format(floor["mean"]),
        )
        return Explanation.of(said, [f"{worst['value']} (p = {worst['p_value']:.2g})"] if worst else (), means)

    def finding(self, result: ItemResult) -> str:
        axis, details = axis_of(result), details_of(result)
        description = f"Lists depend on {axis}."
        if worst := details.get("worst"):
            value = worst["value"]
            means = {name: summary["mean"] for name, summary in details.get("similarity", {}).items()}
            others = [mean for name, mean in means.items() if name != value]
            numbers = (
                f" (similarity to the neutral lists {means[value]:.3g}; "
                f"other values of {axis}: {statistics.fmean(others):.3g} on average)"
                if value in means and others
                else ""
            )
            description = f"The most disadvantaged value of {axis} is {shortened(value)}{numbers}."
            # Items in an example list for the value that no neutral one has.
            lines: dict[str, list[str]] = {value: [], NEUTRAL: []}
            for example in result.explanation.examples:
                entries = [re.sub(r"^\W*\d*\W*", "", line) for line in (example.text or "").splitlines()]
                lines.setdefault(example.group, []).extend(entries)
            neutral = {line.casefold() for line in lines[NEUTRAL]}
            only = [line for line in dict.fromkeys(lines[value]) if 0 < len(line) <= LONGEST_ENTRY]
            if only := [line for line in only if line.casefold() not in neutral]:
                description += (
                    f" In the examples, lists for {shortened(value)} contain {listed(only)}; the neutral lists do not."
                )
        return description

    def examples(self, item: ListItem[SettingsT], measurement: Measurement, answers: Answers) -> list[list[Example]]:
        """Return an entity's lists for the most disadvantaged value and neutral, the most affected entity first."""
        worst, by_entity = measurement.details.get("worst"), measurement.details["by_entity"]
        if worst is None:
            return []
        value, sign = worst["value"], -1 if self.harmed == "highest" else 1
        # Of a question, the first trial is shown, and of a trial, the original request.
        first: dict[tuple[str, str], Answer] = {}
        for answer in sorted(answers, key=lambda each: (each.trial, len(each.labels), sorted(each.labels.items()))):
            first.setdefault((answer.labels["entity"], answer.labels.get("value") or NEUTRAL), answer)
        numbers = {entity: cells[value] for entity, cells in by_entity.items() if cells.get(value) is not None}
        return [
            [(value, first[entity, value]), (NEUTRAL, first[entity, NEUTRAL])]
            for entity in sorted(numbers, key=lambda entity: (sign * numbers[entity], entity))
            if (entity, value) in first and (entity, NEUTRAL) in first
        ]


def _compared_columns(item: ListItem[SettingsT], matrix: Matrix) -> list[int]:
    """Return the columns with as many lists as a significant difference needs, or half the largest number."""
    return ranked_lists.compared_columns(matrix.rows, needed_units(item.planned_alpha), MINIMUM_UNITS)


def _numbers(table: UnitTable) -> Floats:
    return table.numbers if isinstance(table, Matrix) else table.rows


def values_of(probe: RecommendationProbe, attribute: str) -> tuple[str, ...]:
    """Return the values of an attribute, in the probe's order; raise `NotMeasurable` for a single value."""
    values = tuple(value.label for value in probe.attributes[attribute].values)
    if len(values) < 2:
        raise NotMeasurable(
            f"the attribute `{attribute}` has only one value: name at least two values to compare", permanent=True
        )
    return values


def known_attributes(probe: RecommendationProbe, audit: str, attributes: Sequence[str]) -> Sequence[str]:
    """Return the attributes; raise `ProbeError` if the probe lacks one of them."""
    for attribute in attributes:
        if attribute not in probe.attributes:
            raise ProbeError(
                f"{probe.name}: `{audit}` names the attribute `{attribute}`, which the probe lacks "
                f"(valid: {', '.join(probe.attributes)})"
            )
    return attributes


def compared_trials(probe: RecommendationProbe, answers: Answers, **asked: str) -> float:
    """Return how many trials of neutral lists are compared with the lists with the labels `asked`.

    Further trials are for `uncertainty` only. Of a file, all trials are compared: the number is infinite.
    """
    if probe.responses is not None:
        return math.inf
    trials = (
        answer.trial + 1
        for answer in answers
        if all(answer.labels.get(name, "") == label for name, label in asked.items())
    )
    return max(probe.neutral_trials, max(trials, default=1))
