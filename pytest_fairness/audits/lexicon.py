"""Audit `lexicon`: rates of a lexicon's terms (agentic, communal or any other words) in two groups' texts.

Tests and intervals count documents (answers), not words, because the words of one text are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationInfo,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from pytest_fairness.audits.base import WordRows
from pytest_fairness.audits.documents import (
    SIDES,
    Groups,
    TextItem,
    Usage,
    sampled,
    sides_and_strata,
    text_of,
)
from pytest_fairness.audits.info import AuditInfo, Direction, cohens_d_of_error
from pytest_fairness.audits.terms import Terms
from pytest_fairness.audits.texts import DocumentValueAudit, DocumentValues
from pytest_fairness.audits.word_counts import WordCounts
from pytest_fairness.languages import Language, normalise
from pytest_fairness.probes import field_types, table
from pytest_fairness.probes.diagnostics import Diagnostic, errors_at, raise_diagnostics, raise_file_errors
from pytest_fairness.probes.field_types import (
    AuditSettings,
    Identifier,
    Line,
    ProbeFile,
    ProbeModel,
    display_path,
    mapping_or_other,
    normalized_term,
    probe_source,
)
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import (
    Answers,
    Comparison,
    Concern,
    Contributor,
    Explanation,
    Json,
    Measurement,
)
from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import Bools, Floats
from pytest_fairness.stats.strata import odds_ratio

# Settings of the audit `lexicon`: named lists of terms, in the probe file or in text files beside it.

LABEL = "lexicon"
"""Name of an item's label that holds the name of its lexicon; the item also has a label for its axis."""


def _checked_terms(listed: tuple[str, ...]) -> tuple[str, ...]:
    raise_diagnostics(Diagnostic((place,), message) for place, message in field_types.term_errors(listed))
    return listed


def _checked_term(term: str) -> str:
    if (message := field_types.term_error(term)) is not None:
        raise PydanticCustomError("term", "{message}", {"message": message})
    return term


class LexiconFile(ProbeModel):
    """Terms in a text file, one in each line."""

    file: ProbeFile = Field(
        description="Text file (.txt) in the probe's folder, one term in each line; empty lines and lines that begin "
        "with # are ignored."
    )

    _terms: tuple[str, ...] = PrivateAttr(default=())

    @field_validator("file")
    @classmethod
    def _holds_terms(cls, file: Path, info: ValidationInfo) -> Path:
        if file.suffix.casefold() != SUFFIX:
            raise PydanticCustomError(
                "file", "{named} is not a text file with one term in each line: its name must end in {suffix}",
                {"named": repr(file.name), "suffix": SUFFIX},
            )  # fmt: skip
        with errors_at():
            read(file, display_path(file, probe_source(info).root))
        return file

    def model_post_init(self, context: Any, /) -> None:
        """Read the terms once, so that a change of the file during a run has no effect."""
        self._terms = read(self.file, self.file.name)

    @property
    def terms(self) -> tuple[str, ...]:
        return self._terms

    @model_serializer
    def _content(self) -> tuple[str, ...]:
        """Return the terms in place of the path: the key of a stored measurement must depend on them."""
        return self._terms


LexiconTerms = Annotated[
    Annotated[
        tuple[Annotated[Line, AfterValidator(_checked_term)], ...],
        Field(min_length=1),
        AfterValidator(_checked_terms),
        Tag("other"),
    ]
    | Annotated[LexiconFile, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""A list of terms, or the name of a file with terms."""


class LexiconSettings(AuditSettings):
    """Settings of `lexicon`: lists of words, stems and phrases whose rates are compared between groups."""

    item_labels: ClassVar[tuple[str, ...]] = (LABEL,)

    lexicons: dict[Identifier, LexiconTerms] = Field(
        min_length=1,
        description="Lexicons by name, each a list of terms or {file: NAME.txt}. Terms are words, phrases, and "
        "stems such as lead*, which stand for all words with this beginning. Each lexicon becomes an item for each "
        "marked group.",
    )

    def terms(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the terms of an item's lexicon, from the item's labels."""
        lexicon = self.lexicons[labels[LABEL]]
        return lexicon.terms if isinstance(lexicon, LexiconFile) else lexicon


COMMENT = "#"
SUFFIX = ".txt"


def read(path: Path, name: str) -> tuple[str, ...]:
    """Return the terms of a file, which messages call `name`.

    Raises:
        ProbeError: the file has errors; the message has a line `file:line: message` for each error.
    """
    lines = enumerate(table.read_text(path, name).splitlines(), start=1)
    rows = [(number, line.strip()) for number, line in lines if line.strip() and not line.lstrip().startswith(COMMENT)]
    invalid = field_types.term_errors([term for _, term in rows])
    errors = [f"{name}:{rows[place][0]}: {message}" for place, message in invalid]
    raise_file_errors(errors if rows else [f"{name}:1: the file has no terms: write one in each line"], name)
    return tuple(term for _, term in rows)


# Rates of a lexicon's terms in each answer for two groups, and the terms with the largest gaps.

PER = 100
"""Number of words to which rates refer: a rate is the number of occurrences in this number of words."""
BOOTSTRAPS = 1999
SHOWN_TERMS = 20
DECIMALS = 12
"""Numbers are rounded to this many decimals before they are ordered, because of floating-point errors."""


@dataclass(frozen=True)
class Rates(DocumentValues):
    """Documents of one run, with the occurrences of a lexicon's terms; `values` are the rates per 100 words.

    The gap is the difference between the mean rates of both groups. The standard error of the gap is never smaller than
    the error that one occurrence of a term in each group causes: other documents may contain terms, even if these
    documents contain none.

    Attributes:
        terms: terms of the lexicon.
        found: occurrences of the terms in the documents; terms that do not occur are left out.
        lengths: (documents,) number of words of each document; at least the number of occurrences of terms in it.
    """

    terms: tuple[str, ...]
    found: WordCounts
    lengths: Floats

    @classmethod
    def of(cls, item: TextItem[LexiconSettings], groups: Groups) -> Rates:
        """Count the terms in the usable answers of both groups, without strata that hold only one group.

        Identity terms are not removed from the texts, because they may be terms of the lexicon.

        Raises:
            NotMeasurable: a group has too few usable answers in strata that hold both groups.
        """
        terms, indices = item.settings.terms(item.labels), sampled(groups)
        marked, strata, names = sides_and_strata(groups, indices)
        counted = [occurrences(text_of(groups.answers[index]), terms, groups.probe.language) for index in indices]
        lengths = np.array([number for _, number in counted], dtype=np.float64)
        return cls(
            values=PER * np.array([len(found) for found, _ in counted], dtype=np.float64) / lengths,
            marked=marked,
            strata=strata,
            stratum_names=names,
            least_error=PER / float(lengths.mean()) * math.hypot(*(1 / side.sum() for side in (marked, ~marked))),
            item=item,
            groups=groups,
            terms=terms,
            found=WordCounts.of(found for found, _ in counted),
            lengths=lengths,
        )

    @cached_property
    def usage(self) -> Usage:
        """Return the uses of the terms that occur; a term's rate is its mean rate within strata."""
        weights = PER * np.abs(self.coefficients) / self.lengths
        rates = np.stack([self.found.counts.T @ (weights * side) for side in (self.marked, ~self.marked)])
        return replace(Usage.of(self.found, self.marked, self.found.words), rates=rates)

    @cached_property
    def gaps(self) -> dict[str, float]:
        """Return the difference between the groups' mean rates of each term that occurs."""
        marked, unmarked = self.usage.rates
        return dict(zip(self.usage.words, (marked - unmarked).tolist(), strict=True))

    def details(self) -> dict[str, Json]:
        hits, usage = np.asarray(self.found.counts.sum(axis=1), dtype=np.float64), self.usage
        random = resampling.generator(f"{self.item.seed}/odds")
        counts = np.stack([hits, self.lengths - hits], axis=1)
        odds = odds_ratio(counts, self.marked, self.strata, BOOTSTRAPS, random)
        rows = {
            term: {
                "term": term,
                **dict(zip(SIDES, rates, strict=True)),
                "documents": documents,
                "gap": self.gaps[term],
                "side": SIDES[int(side < 0)],
            }
            for term, rates, documents, side in zip(
                usage.words, usage.rates.T.tolist(), usage.texts.sum(axis=0).tolist(), usage.sides, strict=True
            )
        }

        def by_group(number: Callable[[Bools], float]) -> dict[str, float]:
            sides = (self.marked, ~self.marked)
            return {name: number(side) for name, side in zip(self.groups.names, sides, strict=True)}

        return {
            "rates": dict(zip(self.groups.names, self.means(), strict=True)),
            "texts_with_terms": by_group(lambda side: float((hits[side] > 0).mean())),
            "occurrences": by_group(lambda side: int(hits[side].sum())),
            "tokens": by_group(lambda side: int(self.lengths[side].sum())),
            "terms": [rows[term] for term in _largest_first(self.gaps)[:SHOWN_TERMS]],
            "terms_in_lexicon": len(self.terms),
            "occurring_terms": len(rows),
            "unused_terms": [term for term in self.terms if term not in rows][:SHOWN_TERMS],
            "odds_ratio": dict(zip(("value", "interval", "p_value"), odds, strict=True)),
        }

    def change_details(self, baseline: Rates) -> dict[str, Json]:
        """Return at most `SHOWN_TERMS` terms whose gap changed, the largest change first."""
        gaps, before = self.gaps, baseline.gaps
        change = {term: gaps.get(term, 0.0) - before.get(term, 0.0) for term in {**gaps, **before}}
        return {
            "changed_terms": [
                {"term": term, "gap_before": before.get(term, 0.0), "gap": gaps.get(term, 0.0), "change": change[term]}
                for term in _largest_first(change)[:SHOWN_TERMS]
                if round(change[term], DECIMALS)
            ]
        }


def _largest_first(numbers: Mapping[str, float]) -> list[str]:
    return sorted(numbers, key=lambda term: (-abs(round(numbers[term], DECIMALS)), term))


def occurrences(text: str, terms: tuple[str, ...], language: Language) -> tuple[list[str], int]:
    """Return the term of each occurrence, and the text's number of words, at least 1 and at least all occurrences."""
    found = [*_finder(terms).found(text)]
    return found, max(1, len(language.words(normalise(text))), len(found))


@lru_cache(maxsize=100)
def _finder(terms: tuple[str, ...]) -> Terms:
    return Terms(terms)


# The audit.


class Lexicon(DocumentValueAudit[LexiconSettings, Rates]):
    info = AuditInfo(
        name="lexicon",
        title="Unequal use of listed words",
        question="Do texts about one group use the words of a list more often?",
        formula="mean over strata of (mean rate of the marked group − mean rate of the unmarked group);  "
        "rate = 100 · (occurrences of the terms in an answer) / (words of the answer)",
        meaning="Occurrences per 100 words; 0 = equal rates, above 0 = more for the marked group. The odds ratio of "
        "all terms together is reported with an interval and a test whose units are answers.",
        source="Wan, Pu, Sun, Garimella, Chang and Peng 2023, “Kelly is a Warm Person, Joseph is a Role Model”; "
        "Welch 1947; Satterthwaite 1946",
        better=Direction.ZERO,
        unit="per 100 words",
        tolerance=0.5,
        value_range=(-100, 100),
        limit_range=(0, 100),
        charts={"terms": "term_rates"},
        effect=cohens_d_of_error("(value / standard error) · √(1/n₁ + 1/n₂), for groups with n₁ and n₂ answers"),
    )
    version = 6
    settings_model = LexiconSettings
    reversed_gap = (
        "in the baseline, the terms were used {before} per 100 words more for {less}; now they are used {now} more for "
        "{more}"
    )

    def items(self, probe: GenerationProbe, settings: LexiconSettings) -> list[TextItem[LexiconSettings]]:
        return [
            replace(item, subject=f"{item.subject},{LABEL}={name}", labels={**item.labels, LABEL: name})
            for item in super().items(probe, settings)
            for name in settings.lexicons
        ]

    def fingerprint(self, item: TextItem[LexiconSettings]) -> dict[str, str]:
        return {f"lexicon {item.labels[LABEL]}": repr(sorted(map(normalized_term, item.settings.terms(item.labels))))}

    def values(self, item: TextItem[LexiconSettings], groups: Groups) -> Rates:
        return Rates.of(item, groups)

    def concerns(self, item: TextItem[LexiconSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Add a concern if no term of the lexicon occurs in any answer."""
        found, name = super().concerns(item, answers, measurement), item.labels[LABEL]
        if measurement.details["occurring_terms"]:
            return found
        message = (
            f"none of the {measurement.details['terms_in_lexicon']} terms of the lexicon {name} occurs in any answer, "
            f"so that the groups cannot be compared. Check the spelling in `lexicons.{name}`, and the language of the "
            "answers; lead* stands for all words that begin with lead"
        )
        return [Concern("terms_never_occur", message, withholds="verdict"), *found]

    def explanation(self, item: TextItem[LexiconSettings], measurement: Measurement) -> Explanation:
        """Return the gap, the groups' rates, and the terms that contribute to the gap (not against it)."""
        rates = ", ".join(f"{rate:.3g} for {name}" for name, rate in measurement.details["rates"].items())
        weights = self.word_weights(measurement)
        return Explanation.of(
            f"rates of the lexicon's terms differ by {measurement.value:+.3g} per 100 words ({rates})",
            (term for term, gap in weights.items() if gap * measurement.value > 0),
            super().explanation(item, measurement).contributions,
        )

    def explanation_of_change(self, item: TextItem[LexiconSettings], comparison: Comparison) -> Explanation:
        changed = comparison.details.get("changed_terms", ())
        return Explanation(contributors=[Contributor(term["term"], now=term["change"]) for term in changed])

    def contributors(self, measurement: Measurement, comparison: Comparison | None) -> Sequence[Contributor]:
        """Return the terms whose gap changed in the direction of the value, else those that contribute to the value."""
        changed = comparison.explanation.contributors if comparison is not None else ()
        moved = [term for term in changed if (term.now or 0.0) * measurement.value > 0]
        return moved if changed else measurement.explanation.contributors

    def word_rows(self, item: TextItem[LexiconSettings], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        rates = self.values(item, Groups.of(item, answers))
        return rates.usage.rows("gap per 100 words", np.array([*rates.gaps.values()]), rates.groups.names)

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        return {term["term"]: term["gap"] for term in measurement.details["terms"]}

    def typicality(self, item: TextItem[LexiconSettings], measurement: Measurement) -> Callable[[str], float]:
        """Return a function that scores a text by its rate of terms, below 0 if the marked group uses them less."""
        sign, terms = -1.0 if measurement.value < 0 else 1.0, item.settings.terms(item.labels)

        def rate(text: str) -> float:
            found, number = occurrences(text, terms, item.probe.language)
            return sign * PER * len(found) / number

        return rate
