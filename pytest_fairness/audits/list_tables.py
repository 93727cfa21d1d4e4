"""Recommended lists in comparable form, and tables of one number for each entity and attribute value."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, combinations

import numpy as np

from pytest_fairness.audits.info import listed, shortened
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.backends import chunks_of
from pytest_fairness.probes.recommendation import RecommendationProbe
from pytest_fairness.records import Answer, Answers, ItemResult, Json, Pair, Status
from pytest_fairness.stats import intervals, ranked_lists, resampling
from pytest_fairness.stats.gaps import mean_error
from pytest_fairness.stats.resampling import Floats
from pytest_fairness.stats.unit_tables import SIGNS, UnitStatistic

# Tables of one number for each entity and attribute value, and what reports say of them.
#
# A table holds the numbers of one run. Its details are the means of the attribute values, the most disadvantaged
# value, the values by domain, and what changed between two runs.


@dataclass(frozen=True)
class Matrix(UnitTable):
    """A table of mean numbers over trials, for each entity (row) and attribute value (column).

    Attributes:
        domains: domain of each entity; entities without a domain are left out.
        measured: the numbers before `compared` completed the rows; `None` if the rows are not completed.
    """

    domains: Mapping[str, str] = field(default_factory=dict)
    measured: Floats | None = None

    def merged(self, clusters: Mapping[str, str], *, sums: bool) -> UnitTable:
        return UnitTable.merged(replace(self, measured=None), clusters, sums=sums)

    def compared(self, columns: Sequence[int]) -> Matrix:
        """Return the table of these columns with completed rows; see `stats.ranked_lists.complete_rows`.

        The detail `too_few` lists the other attribute values with their number of entities and their mean.
        """
        left_out = {
            name: {
                "entities": int((~np.isnan(self.rows[:, column])).sum()),
                "mean": None if np.isnan(self.rows[:, column]).all() else float(np.nanmean(self.rows[:, column])),
            }
            for column, name in enumerate(self.columns)
            if column not in columns
        }
        measured = self.rows[:, columns]
        return replace(
            self,
            columns=tuple(self.columns[column] for column in columns),
            rows=ranked_lists.complete_rows(measured),
            measured=measured,
            details={**self.details, **({"too_few": left_out} if left_out else {})},
        )

    @classmethod
    def averaged(
        cls,
        values: Sequence[str],
        cells: Mapping[tuple[str, str], Sequence[float]],
        *,
        entities: Iterable[str],
        domains: Mapping[str, str],
        n: Mapping[str, int],
        missing: Mapping[str, int],
    ) -> Matrix:
        """Return a table of means of each entity and attribute value; entities may be repeated."""
        units = tuple(sorted({*entities}))
        rows = np.full((len(units), len(values)), np.nan)
        for row, entity in enumerate(units):
            for column, value in enumerate(values):
                numbers = [number for number in cells.get((entity, value), ()) if not math.isnan(number)]
                if numbers:
                    rows[row, column] = sum(numbers) / len(numbers)
        return cls(units, tuple(values), rows, n, missing, domains=domains)

    @classmethod
    def joined(
        cls, values: Sequence[str], groups: Sequence[str], parts: Sequence[Matrix], details: Mapping[str, Json]
    ) -> Matrix:
        """Join the rows of tables without common entities; the groups' usable and missing answers are added up."""
        return cls(
            tuple(entity for part in parts for entity in part.units),
            tuple(values),
            np.concatenate([np.empty((0, len(values))), *(part.rows for part in parts)]),
            {group: sum(part.n[group] for part in parts) for group in groups},
            {group: sum(part.missing[group] for part in parts) for group in groups},
            details,
            domains={entity: domain for part in parts for entity, domain in part.domains.items()},
        )


SHOWN_ENTITIES = 5
"""Largest number of changed entities in the details."""
LONGEST_ENTRY = 60
"""Largest number of characters of a list entry that a finding names."""


def numbers_of(table: UnitTable) -> Floats:
    """Return the (entities, columns) measured numbers of a table, before its rows were completed."""
    return table.rows if not isinstance(table, Matrix) or table.measured is None else table.measured


def against_others(table: UnitTable, harmed: str, random: np.random.Generator) -> dict[str, dict[str, Json]]:
    """Return, for each attribute value, its mean minus the mean of all other attribute values, with interval and test.

    The one-sided p-value is from a sign-flip test over entities. It is adjusted for the number of attribute values; see
    `resampling.sign_flips`. The result is empty for a single value, or if no end (`highest`, `lowest`) is `harmed`.
    """
    rows = table.rows[table.complete]
    values = rows.shape[1]
    if not harmed or values < 2:
        return {}
    effects, signs = (
        each - (each.sum(axis=1, keepdims=True) - each) / (values - 1)
        for each in (rows, ranked_lists.row_contributions(numbers_of(table)))
    )
    p_values = resampling.sign_flips(signs if harmed == "highest" else -signs, SIGNS, random)
    return {
        name: {"effect": effect, "effect_interval": list(interval), "p_value": float(p_value)}
        for name, own, p_value in zip(table.columns, effects.T, p_values, strict=True)
        for effect, interval in [_mean_and_interval(own)]
    }


def pair_tests(table: UnitTable, random: np.random.Generator) -> tuple[Pair, ...]:
    """Return the difference of the means of each two attribute values, with interval and test.

    The two-sided p-value is from a sign-flip test over entities, adjusted for the number of pairs.
    """
    rows, signs = table.rows[table.complete], ranked_lists.row_contributions(numbers_of(table))
    pairs = list(combinations(range(len(table.columns)), 2))
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    p_values = resampling.sign_flips(signs[:, first] - signs[:, second], SIGNS, random, two_sided=True)
    return tuple(
        Pair(
            (table.columns[one], table.columns[other]),
            "",
            *_mean_and_interval(rows[:, one] - rows[:, other]),
            float(p_value),
        )
        for (one, other), p_value in zip(pairs, p_values, strict=True)
    )


def worst_value(others: Mapping[str, Mapping[str, Json]], harmed: str) -> dict[str, Json]:
    """Return the attribute value that is most surely worse than the others, from `against_others`."""
    if not others:
        return {}
    sign = 1 if harmed == "highest" else -1
    # Rounded, so that values that are equal except for rounding errors are a tie; the first of a tie is taken.
    name = min(others, key=lambda name: (others[name]["p_value"], -round(sign * others[name]["effect"], 12)))
    return {"worst": {"value": name, "effect": others[name]["effect"], "p_value": others[name]["p_value"]}}


def by_domain(table: UnitTable, statistic: UnitStatistic, quantity: str) -> dict[str, Json]:
    """Return, for each domain of entities, the audit's value and, under `quantity`, the means of values with lists."""
    if not isinstance(table, Matrix) or not table.domains:
        return {}
    details = {}
    for domain in sorted({*table.domains.values()}):
        numbers = numbers_of(table)[[table.domains.get(entity) == domain for entity in table.units]]
        columns = ranked_lists.compared_columns(numbers, 1, 1)
        rows = ranked_lists.complete_rows(numbers[:, columns])
        rows = rows[~np.isnan(rows[:, 0])]
        means = rows.mean(axis=0) if len(rows) else np.empty(0)
        details[domain] = {
            "entities": len(rows),
            "value": float(statistic.value(means)) if len(rows) else None,
            quantity: {table.columns[column]: float(mean) for column, mean in zip(columns, means, strict=False)},
        }
    return {"by_domain": details}


def changed_values(values: Sequence[str], current: Floats, baseline: Floats) -> list[tuple[str, float, float]]:
    """Return each value's mean in both runs, first that whose change differs most from the mean of all changes."""
    means = current.mean(axis=0), baseline.mean(axis=0)
    moved = means[0] - means[1]
    against = np.abs(moved - moved.mean()) if len(moved) > 1 else np.abs(moved)
    # With only two values, both changes differ equally from the mean change; the larger change then comes first.
    sizes = [
        (-round(float(apart), 12), -round(abs(float(move)), 12)) for apart, move in zip(against, moved, strict=True)
    ]
    order = sorted(range(len(values)), key=lambda column: (*sizes[column], column))
    return [(values[column], float(means[0][column]), float(means[1][column])) for column in order]


def changed_entities(entities: Sequence[str], current: Floats, baseline: Floats) -> list[tuple[str, float]]:
    """Return at most `SHOWN_ENTITIES` entities whose numbers changed unequally, the most unequal change first.

    An entity's change is the largest distance between the change for one attribute value and the mean change for all
    attribute values; for a single attribute value, it is the absolute change.
    """
    moved = current - baseline
    sizes = np.abs(moved - (moved.mean(axis=1, keepdims=True) if moved.shape[1] > 1 else 0)).max(axis=1)
    order = sorted(range(len(entities)), key=lambda row: (-round(float(sizes[row]), 12), entities[row]))
    return [(entities[row], float(sizes[row])) for row in order[:SHOWN_ENTITIES] if sizes[row] > 0]


def column_summary(completed: Floats, numbers: Floats) -> dict[str, Json]:
    """Return mean and 95 % interval of the completed numbers, SD and number of the measured ones; NaN is no number."""
    mean, interval = _mean_and_interval(completed[~np.isnan(completed)])
    present = numbers[~np.isnan(numbers)]
    return {"mean": mean, "sd": float(present.std(ddof=1)), "entities": len(present), "interval": list(interval)}


def _mean_and_interval(numbers: Floats) -> tuple[float, tuple[float, float]]:
    """Return the mean of at least two numbers, and its 95 % confidence interval."""
    mean = float(numbers.mean())
    return mean, intervals.interval(mean, mean_error(numbers), degrees_of_freedom=len(numbers) - 1)


def only_in_lists_of(value: str, result: ItemResult) -> str:
    """Return a sentence on items in an example list for `value` that no neutral one has; empty without any."""
    own: list[str] = []
    neutral: set[str] = set()
    for example in result.explanation.examples:
        lines = [re.sub(r"^\W*\d*\W*", "", line) for line in (example.text or "").splitlines()]
        if example.group == NEUTRAL:
            neutral |= {line.casefold() for line in lines}
        elif example.group == value:
            own += lines
    only = [line for line in dict.fromkeys(own) if 0 < len(line) <= LONGEST_ENTRY and line.casefold() not in neutral]
    if not only:
        return ""
    return f" In the examples, lists for {shortened(value)} contain {listed(only)}; the neutral lists do not."


# Recommended lists in comparable form: at most k different normalised titles, with similar titles merged.

NEUTRAL = "neutral"
"""Value of the label `attribute` for a question without an attribute; also the name of the neutral group in reports."""

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


ENTITIES_AT_ONCE = 500
"""Number of entities whose lists are in memory at the same time."""


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


@dataclass(frozen=True, slots=True)
class Merge:
    """Title that was replaced by a similar title of the same entity."""

    entity: str
    item: str
    into: str


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
            key = labels["entity"], labels["attribute"], labels.get("value", ""), labels.get("perturbation", "")
            asked.setdefault((*key, answer.trial), []).append(answer)
            if labels.get("domain"):
                # If an entity has several domains, the alphabetically last one counts, so that the order of answers
                # does not matter.
                domains[labels["entity"]] = max(labels["domain"], domains.get(labels["entity"], ""))
        lists = [_recommended_list(probe, key, asked[key]) for key in sorted(asked)]
        merges: list[Merge] = []
        if probe.fuzzy is not None:
            lists, merges = _merged(lists, probe.fuzzy)
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

    def merge_details(self) -> list[dict[str, str]]:
        return [{"entity": merge.entity, "item": merge.item, "into": merge.into} for merge in self.merges]


def prepared(probe: RecommendationProbe, items: Iterable[str]) -> tuple[str, ...]:
    """Return the items, normalised if the probe asks for it, without empty and repeated ones."""
    prepared_items = map(normalized, items) if probe.normalize else (item for item in items if item.strip())
    return tuple(filter(None, dict.fromkeys(prepared_items)))


def relevant_items(probe: RecommendationProbe, lists: Lists) -> dict[str, tuple[str, ...]]:
    """Return the relevant items of each entity, prepared like the lists; an entity may have none."""
    relevant = {entity: prepared(probe, (probe.relevant or {}).get(entity, ())) for entity in lists.entities}
    # A title that was merged in the entity's lists is replaced here too.
    for merge in lists.merges:
        relevant[merge.entity] = tuple(merge.into if item == merge.item else item for item in relevant[merge.entity])
    return relevant


def count(lists: Iterable[RecommendedList], groups: Sequence[str], *statuses: Status) -> dict[str, int]:
    counts = dict.fromkeys(groups, 0)
    for each in lists:
        if each.status in statuses and each.group in counts:
            counts[each.group] += 1
    return counts


def _sort_key(answer: Answer) -> tuple[object, ...]:
    labels = answer.labels
    # Direct questions come before indirect ones, and first questions before repeated ones.
    again = labels.get("form", ""), len(labels.get("requery", "")), labels.get("requery", "")
    return *again, answer.trial, sorted(labels.items()), answer.text or ""


def _recommended_list(
    probe: RecommendationProbe, key: tuple[str, str, str, str, int], attempts: Answers
) -> RecommendedList:
    """Return the longest list among the answers to the question and trial of `key`."""
    entity, attribute, value, perturbation, trial = key
    if len(attempts) > 1:
        attempts = sorted(attempts, key=_sort_key)
    lists = [tuple(answer.content) if answer.usable else () for answer in attempts]
    complete = [prepared(probe, items) for items in lists]
    returned = [min(probe.k, len(items)) for items in complete]
    best = max(range(len(attempts)), key=lambda index: (returned[index], attempts[index].usable, -index))
    status = attempts[best].status
    items = complete[best] if len(lists[best]) <= probe.k else prepared(probe, lists[best][: probe.k])
    return RecommendedList(
        entity=entity,
        attribute=attribute,
        value=value,
        perturbation=perturbation,
        trial=trial,
        status=Status.UNREADABLE if status is Status.OK and not items else status,
        items=items,
        returned=returned[best],
        indirect=bool(items) and bool(attempts[best].labels.get("form")),
    )


def _merged(lists: Sequence[RecommendedList], threshold: float) -> tuple[list[RecommendedList], list[Merge]]:
    """Merge similar titles of an entity; return the lists, and the merges.

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
    into = {(merge.entity, merge.item): merge.into for merge in merges}
    renamed = [
        replace(each, items=tuple(dict.fromkeys(into.get((each.entity, item), item) for item in each.items)))
        for each in lists
    ]
    return renamed, merges
