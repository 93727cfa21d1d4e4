"""Recommended lists in comparable form: at most k different normalised titles, with similar titles merged."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from pytest_fairness.chunks import chunks_of
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answer, Answers, Status

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
        """Return whether the answer holds a list."""
        return self.status is Status.OK

    @property
    def group(self) -> str:
        """Return the group of the list: its attribute value, or `neutral`."""
        return NEUTRAL if self.attribute == NEUTRAL else self.value


@dataclass(frozen=True, slots=True)
class Merge:
    """A title (`item`) that was replaced by a similar title (`into`) of the same entity."""

    entity: str
    item: str
    into: str


@dataclass(frozen=True)
class Lists:
    """Recommended lists, prepared for comparison.

    Attributes:
        all: the lists, sorted by question and trial.
        domains: domain of each entity; entities without a domain are left out.
        merges: titles that were replaced by similar titles.
    """

    all: tuple[RecommendedList, ...]
    domains: Mapping[str, str]
    merges: tuple[Merge, ...]

    @classmethod
    def of(cls, probe: RecommendationProbe, answers: Iterable[Answer], *, direct_only: bool = False) -> Lists:
        """Return the lists of these answers, prepared as the probe's keys `k`, `normalize` and `fuzzy` say.

        A question may have been asked several times: again after a short list, or in the indirect wording after a
        refusal. The longest list then counts; of equally long lists, the first one.

        Args:
            probe: probe of the answers.
            answers: answers of the probe.
            direct_only: whether to leave out answers to the indirect wording.
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
        """Yield the same lists as `of`, in parts to save memory; each part holds all lists of some entities."""
        by_entity: dict[str, list[Answer]] = {}
        for answer in answers:
            by_entity.setdefault(answer.labels["entity"], []).append(answer)
        for entities in chunks_of(sorted(by_entity), ENTITIES_AT_ONCE):
            own = chain.from_iterable(by_entity[entity] for entity in entities)
            yield cls.of(probe, own, direct_only=direct_only)

    @property
    def entities(self) -> tuple[str, ...]:
        """Return the entities, sorted."""
        return tuple(sorted({each.entity for each in self.all}))

    def of_group(self, attribute: str, perturbation: str = "") -> list[RecommendedList]:
        """Return the lists of an attribute, or of `NEUTRAL`; by default, only lists for unperturbed questions."""
        return [each for each in self.all if (each.attribute, each.perturbation) == (attribute, perturbation)]

    def merge_details(self) -> list[dict[str, str]]:
        """Return the merges as plain JSON."""
        return [{"entity": merge.entity, "item": merge.item, "into": merge.into} for merge in self.merges]


def prepared(probe: RecommendationProbe, items: Iterable[str]) -> tuple[str, ...]:
    """Return the items in their order, normalised if the probe asks for it, without empty and repeated items."""
    prepared_items = map(normalized, items) if probe.normalize else (item for item in items if item.strip())
    return tuple(filter(None, dict.fromkeys(prepared_items)))


def relevant_items(probe: RecommendationProbe, lists: Lists) -> dict[str, tuple[str, ...]]:
    """Return the relevant items of each entity, prepared like the lists; an entity may have no relevant items."""
    relevant = {entity: prepared(probe, (probe.relevant or {}).get(entity, ())) for entity in lists.entities}
    # A title that was merged in the entity's lists is replaced here too.
    for merge in lists.merges:
        relevant[merge.entity] = tuple(merge.into if item == merge.item else item for item in relevant[merge.entity])
    return relevant


def count(lists: Iterable[RecommendedList], groups: Sequence[str], *statuses: Status) -> dict[str, int]:
    """Return the number of lists with one of these statuses, by group."""
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
    """Return the longest list among the answers to one question; `key` holds the question's labels and trial."""
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
    """Return two lists: the recommended lists after similar titles of an entity are merged, and the merges.

    A title is replaced by a similar title that is more frequent or, if both are equally frequent, alphabetically first.

    Args:
        lists: lists to search for similar titles.
        threshold: smallest similarity, 0..1, of two titles that count as the same.
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
