"""Audits `marked_words` and `lexicon`: words that the texts of one group use more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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

from pytest_fairness.audits import documents
from pytest_fairness.audits.base import WordRows
from pytest_fairness.audits.documents import SIDES, Groups, TextItem, Usage
from pytest_fairness.audits.info import (
    LARGEST_H_OF_WORDS,
    AuditInfo,
    Direction,
    cohens_d_of_error,
    cohens_h_of_shares,
    grown_words,
)
from pytest_fairness.audits.rules import GrownWords
from pytest_fairness.audits.terms import Terms
from pytest_fairness.audits.text_audit import DocumentValueAudit, DocumentValues, TextAudit
from pytest_fairness.audits.text_samples import repeated_or_one_sided, sampled_texts, terms_never_occur
from pytest_fairness.audits.words import (
    GroupCounts,
    MarkedWordsSettings,
    association_details,
    associations,
    growth_details,
    growth_tests,
    significant_words,
    z_of_words,
)
from pytest_fairness.errors import joined
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
    Evidence,
    Explanation,
    Json,
    Measurement,
)
from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import Floats
from pytest_fairness.stats.strata import odds_ratio

# Audit `marked_words`: words that one group's texts use more, or less, by log-odds with a Dirichlet prior.
#
# The method comes from Monroe, Colaresi and Quinn 2008 ("Fightin' Words"), as used by Cheng, Durmus and Jurafsky
# 2023 ("Marked Personas"). With their critical value, |z| > 1.96, at least one word is significant in most
# comparisons of a group with itself; see `words.Association` for the critical value of this audit. Against a
# baseline, the audit tests whether the difference between the groups' shares of documents with a word grew; see
# `words.Growth`.

NAMED_WORDS = 3
"""Largest number of words that a phrase names."""


class MarkedWords(TextAudit[MarkedWordsSettings]):
    """Audit of words that the marked group's texts use significantly more or less, family-wise over all words."""

    info = AuditInfo(
        name="marked_words",
        title="Words that mark a group",
        question="Which words does one group get more often than the other?",
        formula="δ = ln[(y₁ + α) / (n₁ + α₀ − y₁ − α)] − ln[(y₂ + α) / (n₂ + α₀ − y₂ − α)];  "
        "z = δ / √(1/(y₁ + α) + 1/(y₂ + α));  y = occurrences of the word in a group’s texts, n = number of words of "
        "these texts, α = prior count of the word, α₀ = sum of the prior counts",
        meaning="Number of words whose |z| exceeds the critical value: the (1 − alpha) quantile of the largest |z| "
        "with permuted labels. Tolerance: number of words that may grow. A word grows if the groups' shares of texts "
        "with the word differ more than in the baseline.",
        source="Monroe, Colaresi and Quinn 2008, “Fightin’ Words”; Cheng, Durmus and Jurafsky 2023, “Marked Personas”; "
        "Westfall and Young 1993 on testing many words at once",
        better=Direction.LOWER,
        unit="significant words",
        tolerance=0,
        tolerance_of_value=False,
        best_is_decidable=True,
        value_range=(0, math.inf),
        charts={"words": "marked_words", "grown": "grown_words"},
        effect=LARGEST_H_OF_WORDS,
    )
    version = 8
    settings_model = MarkedWordsSettings
    grows_with_size = True
    rule = GrownWords()

    def uses(self, item: TextItem[MarkedWordsSettings], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to a compared group or, with a pooled prior, to any group."""
        return item.settings.prior == "pooled" or documents.is_compared(item, labels)

    def counted_answers(self, item: TextItem[MarkedWordsSettings], answers: Answers) -> Answers:
        return [answer for answer in answers if documents.is_compared(item, answer.labels)]

    def measure(self, item: TextItem[MarkedWordsSettings], answers: Answers) -> Measurement:
        """Return the number of words whose |z| exceeds the critical value."""
        corpus = GroupCounts.of(item, answers)
        tests = associations(corpus, item.settings, item.alpha, f"{item.seed}/measure")
        details, groups = association_details(corpus, tests), corpus.groups.values()
        n = {name: count for each in groups for name, count in each.usable.items()}
        missing = {name: count for each in groups for name, count in each.missing.items()}
        value, p_value = float(len(significant_words(details))), max(test.p_value for test in tests)
        shares = [word["texts"] for word in details["words"] if word["significant"]]
        evidence = Evidence(
            smallest_share=details["smallest_share"],
            needed_documents=tuple(details["documents_needed"]),
            effect_basis=tuple(cohens_h_of_shares(each["marked"], each["unmarked"]) for each in shares),
        )
        return Measurement(value, None, None, p_value, n=n, missing=missing, details=details, evidence=evidence)

    def compare(self, item: TextItem[MarkedWordsSettings], current: Answers, baseline: Answers) -> Comparison:
        """Return the number of words that became more typical of a group, significantly and by at least `min_share`."""
        groups, before = documents.groups_by_axis(item, current), documents.groups_by_axis(item, baseline)
        tests = growth_tests(groups, before, item.alpha, f"{item.seed}/compare")
        details = growth_details(tests, documents.names_of(groups), item.settings.min_share)
        evidence = Evidence(
            smallest_share=details["smallest_share"], needed_documents=tuple(details["documents_to_stand_out"])
        )
        p_value = max(test.p_value for test in tests)
        return Comparison(float(len(details["grown"])), p_value=p_value, details=details, evidence=evidence)

    def unread_worsening(
        self,
        item: TextItem[MarkedWordsSettings],
        measurement: Measurement,
        shares: Mapping[str, float],
        scale: float,
        *,
        other_side: bool = False,
    ) -> float:
        """Return 1 word if the unread texts alone can hold a new word in `min_share` of a group's texts, else 0."""
        return float(max(shares.values()) >= item.settings.min_share)

    def concerns(
        self, item: TextItem[MarkedWordsSettings], answers: Answers, measurement: Measurement
    ) -> list[Concern]:
        groups = documents.groups_by_axis(item, answers).values()
        return list(
            dict.fromkeys(
                concern for each in groups for concern in [*repeated_or_one_sided(each), *sampled_texts(each)]
            )
        )

    def word_rows(self, item: TextItem[MarkedWordsSettings], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        corpus = GroupCounts.of(item, answers)
        z, significant = z_of_words(corpus, item.settings), set(map(str.casefold, significant_words(details)))
        rows = corpus.usage.rows("z", z, documents.names_of(corpus.groups), significant)
        written: WordRows = documents.as_written(rows, item.probe, self.counted_answers(item, answers))
        return written

    def explanation(self, item: TextItem[MarkedWordsSettings], measurement: Measurement) -> Explanation:
        words = significant_words(measurement.details)
        phrase = f"{measurement.value:.0f} {_word_or_words(measurement.value)} significant in this run alone"
        return Explanation.of(phrase, _content_first(words, item), words)

    def explanation_of_change(self, item: TextItem[MarkedWordsSettings], comparison: Comparison) -> Explanation:
        """Name the words that grew, with the share of texts that contain them, by group.

        If the answers of the baseline are missing, the phrase only says how the number of significant words changed.
        """
        details = comparison.details
        if "grown" not in details:
            change = f"the number of significant words changed by {comparison.value:+.0f}"
            return Explanation(change=f"{change} (without the baseline's answers, these words cannot be named)")
        words = _content_first((str(word["word"]) for word in details["grown"]), item)
        return replace(Explanation.of(names=words), change=_describe_growth(details))

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return each word's z-score (log-odds ratio divided by its standard deviation)."""
        return {word["word"]: word["z"] for word in measurement.details["words"]}


def _content_first(words: Iterable[str], item: TextItem[MarkedWordsSettings]) -> list[str]:
    language = documents.language_of(documents.language_details(item.probe))
    return sorted(words, key=language.is_function_word)


def _describe_growth(details: Mapping[str, Json]) -> str:
    groups = details["groups"]
    names = {"marked": groups["marked"], "unmarked": f"the unmarked group ({groups['unmarked']})"}
    grown = {side: [word for word in details["grown"] if word["side"] == side] for side in SIDES}
    smallest = f"{100 * details['min_share']:.3g} percentage points"
    phrases = [
        f"{len(own)} {_word_or_words(len(own))} grew for {names[side]}: {_words_with_shares(own)}"
        for side, own in grown.items()
        if own
    ] or [f"no word grew by {smallest} or more"]
    if less := details["grown_by_less"]:
        phrases.append(f"words that grew significantly, but by less than {smallest}: {_words_with_shares(less)}")
    return "; ".join(phrases)


def _word_or_words(number: float) -> str:
    return "word" if number == 1 else "words"


def _words_with_shares(words: Sequence[Mapping[str, Any]]) -> str:
    """List words with the shares of texts that contain them, by group (named for the first word only) and run."""
    return joined([word.text for word in grown_words(words, {})], NAMED_WORDS)


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


@dataclass(frozen=True)
class Rates(DocumentValues):
    """Documents of one run, with the occurrences of a lexicon's terms; `values` are the rates per 100 words.

    The gap is the difference between the mean rates of both groups. The standard error of the gap is never smaller than
    the error that one occurrence of a term in each group causes: other documents may contain terms, even if these
    documents contain none.

    Attributes:
        terms: terms of the lexicon.
        found: for each document, the number of occurrences of each term; terms that do not occur are left out.
        words: (documents,) number of words of each document; at least the number of occurrences of terms in it.
        texts: text of each document.
    """

    terms: tuple[str, ...]
    found: tuple[Mapping[str, int], ...]
    words: Floats
    texts: tuple[str, ...]

    @classmethod
    def of(cls, item: TextItem[LexiconSettings], groups: Groups) -> Rates:
        """Count the terms in the usable answers of both groups, without strata that hold only one group.

        Identity terms are not removed from the texts, because they may be terms of the lexicon.

        Raises:
            NotMeasurable: a group has too few usable answers in strata that hold both groups.
        """
        terms = item.settings.terms(item.labels)
        indices = documents.sampled(groups)
        marked, strata, names = documents.sides_and_strata(groups, indices)
        texts = tuple(documents.text_of(groups.answers[index]) for index in indices)
        counted = [counts(text, terms, groups.probe.language) for text in texts]
        words_ = np.array([number for _, number in counted], dtype=np.float64)
        sizes = [int(marked.sum()), int((~marked).sum())]
        return cls(
            values=PER * np.array([found.total() for found, _ in counted], dtype=np.float64) / words_,
            marked=marked,
            strata=strata,
            stratum_names=names,
            least_error=PER / float(words_.mean()) * math.hypot(*(1 / size for size in sizes)),
            item=item,
            groups=groups,
            terms=terms,
            found=tuple(found for found, _ in counted),
            words=words_,
            texts=texts,
        )

    @cached_property
    def hits(self) -> Floats:
        """Return the number of occurrences of all terms in each document."""
        return np.array([sum(found.values()) for found in self.found], dtype=np.float64)

    def by_term(self) -> dict[str, tuple[float, float, int]]:
        """Return each term's mean rate in the marked and in the unmarked group, and its number of documents."""
        rates: dict[str, list[float]] = {}
        documents: Counter[str] = Counter()
        for found, coefficient, number in zip(self.found, self.coefficients, self.words, strict=True):
            documents.update(found.keys())
            for term, count in found.items():
                side = rates.setdefault(term, [0.0, 0.0])
                side[int(coefficient < 0)] += float(PER * count / number * abs(coefficient))
        return {term: (marked, unmarked, documents[term]) for term, (marked, unmarked) in rates.items()}

    def usage(self) -> Usage:
        """Return the uses of the terms that occur; a term's rate is its mean rate within strata."""
        by_term = self.by_term()
        uses, texts = np.zeros((2, 2, len(by_term)), dtype=np.int64)
        numbers = dict(zip(by_term, range(len(by_term)), strict=True))
        for found, of_marked in zip(self.found, self.marked.tolist(), strict=True):
            for term, count in found.items():
                uses[int(not of_marked), numbers[term]] += count
                texts[int(not of_marked), numbers[term]] += 1
        rates = np.array([rates for *rates, _ in by_term.values()]).reshape(-1, 2).T
        return Usage([*by_term], uses, texts, rates, np.array([self.marked.sum(), (~self.marked).sum()]))

    def gaps(self) -> dict[str, float]:
        return {term: marked - unmarked for term, (marked, unmarked, _) in self.by_term().items()}

    def details(self) -> dict[str, Json]:
        sides = (self.marked, ~self.marked)
        by_term, gaps, usage = self.by_term(), self.gaps(), self.usage()
        side_of = dict(zip(usage.words, usage.sides.tolist(), strict=True))
        occurrences = np.stack([self.hits, self.words - self.hits], axis=1)
        random = resampling.generator(f"{self.item.seed}/odds")
        odds = odds_ratio(occurrences, self.marked, self.strata, BOOTSTRAPS, random)

        def by_group(numbers: Sequence[float]) -> dict[str, float]:
            return dict(zip(self.groups.names, numbers, strict=True))

        return {
            "rates": by_group(self.means()),
            "texts_with_terms": by_group([float((self.hits[side] > 0).mean()) for side in sides]),
            "occurrences": by_group([int(self.hits[side].sum()) for side in sides]),
            "tokens": by_group([int(self.words[side].sum()) for side in sides]),
            "terms": [
                {
                    "term": term,
                    **dict(zip(("marked", "unmarked", "documents"), by_term[term], strict=True)),
                    "gap": gaps[term],
                    "side": SIDES[int(side_of[term] < 0)],
                }
                for term in _largest_first(gaps)[:SHOWN_TERMS]
            ],
            "terms_in_lexicon": len(self.terms),
            "occurring_terms": len(by_term),
            "unused_terms": [term for term in self.terms if term not in by_term][:SHOWN_TERMS],
            "odds_ratio": dict(zip(("value", "interval", "p_value"), odds, strict=True)),
        }

    def change_details(self, baseline: Rates) -> dict[str, Json]:
        """Return at most `SHOWN_TERMS` terms whose gap changed, the largest change first."""
        gaps, before = self.gaps(), baseline.gaps()
        change = {term: gaps.get(term, 0.0) - before.get(term, 0.0) for term in {**gaps, **before}}
        return {
            "changed_terms": [
                {"term": term, "gap_before": before.get(term, 0.0), "gap": gaps.get(term, 0.0), "change": change[term]}
                for term in _largest_first(change)[:SHOWN_TERMS]
                if round(change[term], DECIMALS)
            ]
        }


# Audit `lexicon`: rates of a lexicon's terms (agentic, communal or any other words) in two groups' texts.
#
# Tests and intervals count documents (answers), not words, because the words of one text are not independent.


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
        return [*terms_never_occur(item.labels[LABEL], measurement), *super().concerns(item, answers, measurement)]

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
        usage, gaps = rates.usage(), rates.gaps()
        return usage.rows("gap per 100 words", np.array([gaps[term] for term in usage.words]), rates.groups.names)

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        return {term["term"]: term["gap"] for term in measurement.details["terms"]}

    def typicality(self, item: TextItem[LexiconSettings], measurement: Measurement) -> Callable[[str], float]:
        """Return a function that scores a text by its rate of terms, below 0 if the marked group uses them less."""
        sign, terms = -1.0 if measurement.value < 0 else 1.0, item.settings.terms(item.labels)
        return lambda text: sign * term_rate(text, terms, item.probe.language)


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


def _largest_first(numbers: Mapping[str, float]) -> list[str]:
    return sorted(numbers, key=lambda term: (-abs(round(numbers[term], DECIMALS)), term))


def counts(text: str, terms: tuple[str, ...], language: Language) -> tuple[Counter[str], int]:
    """Return the occurrences of each term, and the text's number of words, at least 1 and at least all occurrences."""
    occurrences = Counter(_finder(terms).found(text))
    return occurrences, max(1, len(language.words(normalise(text))), occurrences.total())


def term_rate(text: str, terms: tuple[str, ...], language: Language) -> float:
    """Return the number of occurrences of the terms per `PER` words."""
    occurrences, number = counts(text, terms, language)
    return PER * occurrences.total() / number


@lru_cache(maxsize=100)
def _finder(terms: tuple[str, ...]) -> Terms:
    return Terms(terms)
