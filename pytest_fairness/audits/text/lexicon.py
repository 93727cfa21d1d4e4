"""Audit `lexicon`: rates of a lexicon's terms (agentic, communal or any other words) in two groups' texts.

Tests and intervals count documents (answers), not words, because the words of one text are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pytest_fairness.audits.base import WordRows
from pytest_fairness.audits.effects import cohens_d_of_error
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.concerns import terms_never_occur
from pytest_fairness.audits.text.document_value_audit import DocumentValueAudit
from pytest_fairness.audits.text.groups import Groups, TextItem
from pytest_fairness.audits.text.words import term_rates
from pytest_fairness.audits.text.words.lexicons import LABEL, LexiconSettings
from pytest_fairness.audits.text.words.term_rates import Rates
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.probes.search_terms import normalized
from pytest_fairness.records import Answers, Comparison, Concern, Json, Measurement


class Lexicon(DocumentValueAudit[LexiconSettings, Rates]):
    """Mean number of occurrences of a lexicon's terms per 100 words, marked minus unmarked group, within strata."""

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
    version = 5
    settings_model = LexiconSettings
    reversed_gap = (
        "in the baseline, the terms were used {before} per 100 words more for {less}; now they are used {now} more for "
        "{more}"
    )

    def items(self, probe: GenerationProbe, settings: LexiconSettings) -> list[TextItem[LexiconSettings]]:
        """Return one item for each pair of a marked value (of any axis) and a lexicon."""
        return [
            replace(item, subject=f"{item.subject},{LABEL}={name}", labels={**item.labels, LABEL: name})
            for item in super().items(probe, settings)
            for name in settings.lexicons
        ]

    def fingerprint(self, item: TextItem[LexiconSettings]) -> dict[str, str]:
        """Return the terms of the item's lexicon; their order does not matter."""
        return {f"lexicon {item.labels[LABEL]}": repr(sorted(map(normalized, item.settings.terms(item.labels))))}

    def values(self, item: TextItem[LexiconSettings], groups: Groups) -> Rates:
        """Return the rates of the lexicon's terms; see `DocumentValueAudit.values`."""
        return Rates.of(item, groups)

    def concerns(self, item: TextItem[LexiconSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `TextAudit.concerns`, and a concern if no term occurs in any answer."""
        return [*terms_never_occur(item.labels[LABEL], measurement), *super().concerns(item, answers, measurement)]

    def describe(self, measurement: Measurement) -> str:
        """Return the gap and the rate of each group as a phrase."""
        rates = ", ".join(f"{rate:.3g} for {name}" for name, rate in measurement.details["rates"].items())
        return f"rates of the lexicon's terms differ by {measurement.value:+.3g} per 100 words ({rates})"

    def word_rows(self, item: TextItem[LexiconSettings], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        """Return a row for each term that occurs; see `Audit.word_rows`."""
        rates = self.values(item, Groups.of(item, answers))
        usage, gaps = rates.usage(), rates.gaps()
        return usage.rows("gap per 100 words", np.array([gaps[term] for term in usage.words]), rates.groups.names)

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the gap of each term's rates; see `TextAudit.word_weights`."""
        return {term["term"]: term["gap"] for term in measurement.details["terms"]}

    def typicality(self, item: TextItem[LexiconSettings], measurement: Measurement) -> Callable[[str], float]:
        """Return a function that scores how typical a text is of the marked group.

        The score is the text's rate of terms, with a minus sign if the marked group uses the terms less.
        """
        sign, terms = -1.0 if measurement.value < 0 else 1.0, item.settings.terms(item.labels)
        return lambda text: sign * term_rates.rate(text, terms, item.probe.language)

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the terms that contribute most to the change of the gap or, without such terms, to the gap itself.

        Terms whose own change (or gap) has another sign than the item's value are left out.
        """
        changed = comparison.details.get("changed_terms", ()) if comparison is not None else ()
        gaps = {term["term"]: term["change"] for term in changed} or self.word_weights(measurement)
        return [term for term, gap in gaps.items() if gap * measurement.value > 0]
