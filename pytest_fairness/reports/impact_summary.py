"""Summary of a bias audit in the form of New York's Local Law 144: applicants, rates and impact ratios by category.

The words and the arithmetic are those of the rules (6 RCNY § 5-300 to 5-304): every category of sex, of race or
ethnicity and of both; people of an unknown category are counted, but in no category.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from statistics import median

from pytest_fairness.errors import FairnessError, joined, one_line
from pytest_fairness.probes import table
from pytest_fairness.probes.diagnostics import suggestion
from pytest_fairness.probes.field_types import folded
from pytest_fairness.probes.recorded_rows import text_field
from pytest_fairness.records import Json
from pytest_fairness.reports.pages import FORMATS, Page, Section, Sheet

SMALL_SHARE = 0.02
"""A category with a smaller share of the applicants may be left out of the impact ratios."""
FOUR_FIFTHS = 0.8
YES = frozenset({"yes", "y", "true", "1", "selected", "hired", "advanced", "invited", "passed"})
NO = frozenset({"no", "n", "false", "0", "not selected", "rejected", "not hired", "not advanced", "failed", ""})
UNKNOWN = frozenset(
    {"", "unknown", "n/a", "na", "nan", "none", "null", "not specified", "not disclosed", "undisclosed", "decline"}
    | {"prefer not to say", "prefer not to answer", "decline to answer", "declined to answer", "not provided"}
    | {"decline to self-identify", "i don't wish to answer", "choose not to disclose", "missing", "?", "-"}
)
"""Values that mean an unknown category, in the form of `folded`."""


@dataclass(frozen=True)
class Category:
    """Category of a table.

    Attributes:
        names: its value of each attribute.
        applicants: number of applicants.
        selected: number of those who are selected, or score above the median of all.
        ratio: rate divided by the highest rate; `None` if the category is left out, or nobody is selected.
        excluded: whether it has less than 2 % of all applicants, and is left out of the impact ratios.
    """

    names: tuple[str, ...]
    applicants: int
    selected: int
    ratio: float | None
    excluded: bool

    @property
    def rate(self) -> float:
        return self.selected / self.applicants


@dataclass(frozen=True)
class ImpactTable:
    """Table of the categories of one or two attributes; `unknown` people are in none of them."""

    attributes: tuple[str, ...]
    categories: Sequence[Category]
    unknown: int

    @property
    def title(self) -> str:
        return " and ".join(self.attributes)


@dataclass(frozen=True)
class ImpactSummary:
    """Summary of a bias audit.

    Attributes:
        applicants: number of rows of the file.
        selected: number of those who are selected, or score above the median.
        median: median score of all applicants; `None` for decisions.
        tied: number of scores that equal the median, which are not above it.
        tables: tables of each attribute, and of both together.
        unknown: number of applicants without each attribute.
        unknown_values: how often each value occurs that was read as unknown, by attribute.
        facts: what is known of the audit, by its name; an empty text for what must still be written.
    """

    applicants: int
    selected: int
    median: float | None
    tied: int
    tables: Sequence[ImpactTable]
    unknown: Mapping[str, int]
    unknown_values: Mapping[str, Mapping[str, int]]
    facts: Mapping[str, str]

    @property
    def rate_name(self) -> str:
        return "selection rate" if self.median is None else "scoring rate"

    @property
    def selected_name(self) -> str:
        return "selected" if self.median is None else "above the median"

    @property
    def below_four_fifths(self) -> list[tuple[str, Category]]:
        """Return the categories with an impact ratio below four fifths, each with the title of its table."""
        return [
            (sheet.title, category)
            for sheet in self.tables
            for category in sheet.categories
            if category.ratio is not None and category.ratio < FOUR_FIFTHS
        ]


def summarized(
    path: Path,
    attributes: Mapping[str, str],
    column: str,
    *,
    scores: bool,
    positive: str | None = None,
    unknown: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
) -> ImpactSummary:
    """Return the summary of a file with one applicant in each row.

    Args:
        path: CSV, JSON Lines, Excel or Parquet file.
        attributes: column of each attribute, such as `{"Sex": "sex"}`; one or two.
        column: column of the decisions or scores.
        scores: whether the column holds scores, of which those above the median of all count.
        positive: value of the column that means selected; by default one of `YES`.
        unknown: further values that mean an unknown category.
        facts: what is known of the audit, by its name.

    Raises:
        FairnessError: the file cannot be read, lacks a column, or has a value that cannot be read.
    """
    content = table.read(path, path.name, "applicants")
    for name in (*attributes.values(), column):
        if name not in content.columns:
            raise FairnessError(
                f"{path.name}: there is no column {name!r}{suggestion(name, content.columns)}. The columns are "
                f"{joined([repr(each) for each in content.columns], 20)}."
            )
    texts = [(row.line, _text(row.fields.get(column))) for row in content.rows]
    middle, tied = None, 0
    if scores:
        numbers = _numbers(path.name, column, texts)
        middle = median(numbers)
        tied = numbers.count(middle)
        selected = [number > middle for number in numbers]
    else:
        selected = _decisions(path.name, column, [text for _, text in texts], positive)
    known_as_unknown = UNKNOWN | {*map(folded, unknown)}
    spellings: dict[tuple[str, str], str] = {}
    people: list[dict[str, str | None]] = []
    values: dict[str, Counter[str]] = {name: Counter() for name in attributes}
    for row in content.rows:
        person: dict[str, str | None] = {}
        for name, own in attributes.items():
            written = _text(row.fields.get(own))
            is_unknown = folded(written) in known_as_unknown
            person[name] = None if is_unknown else spellings.setdefault((name, folded(written)), written)
            if is_unknown:
                values[name][written or "empty"] += 1
        people.append(person)
    for name in attributes:
        if not any(person[name] for person in people):
            raise FairnessError(f"{path.name}: every value of the column {attributes[name]!r} means unknown.")
    groups = [*((name,) for name in attributes), *([tuple(attributes)] if len(attributes) > 1 else [])]
    return ImpactSummary(
        applicants=len(people),
        selected=sum(selected),
        median=middle,
        tied=tied,
        tables=[_table(group, people, selected) for group in groups],
        unknown={name: counts.total() for name, counts in values.items()},
        unknown_values={name: dict(counts.most_common()) for name, counts in values.items()},
        facts={"data file": f"{path.name}, SHA-256 {sha256(path.read_bytes()).hexdigest()}", **(facts or {})},
    )


def _text(value: Json) -> str:
    return "" if value is None else text_field(value).strip()


def _table(
    attributes: tuple[str, ...], people: Sequence[Mapping[str, str | None]], selected: Sequence[bool]
) -> ImpactTable:
    applicants, chosen, unknown = Counter[tuple[str, ...]](), Counter[tuple[str, ...]](), 0
    for person, is_selected in zip(people, selected, strict=True):
        names = tuple(value for name in attributes if (value := person[name]) is not None)
        if len(names) < len(attributes):
            unknown += 1
            continue
        applicants[names] += 1
        chosen[names] += is_selected
    # Every combination is listed, also one without applicants; the order is that of the number of applicants.
    known = [sorted({names[place] for names in applicants}) for place in range(len(attributes))]
    sizes = [
        {value: sum(count for names, count in applicants.items() if names[place] == value) for value in values}
        for place, values in enumerate(known)
    ]
    order = sorted(product(*known), key=lambda names: [-sizes[place][value] for place, value in enumerate(names)])
    compared = [names for names in order if applicants[names] >= SMALL_SHARE * len(people)]
    highest = max((chosen[names] / applicants[names] for names in compared), default=0.0)
    return ImpactTable(
        attributes,
        [
            Category(
                names,
                applicants[names],
                chosen[names],
                chosen[names] / applicants[names] / highest if names in compared and highest else None,
                names not in compared,
            )
            for names in order
            if applicants[names]
        ],
        unknown,
    )


def _decisions(file: str, column: str, texts: Sequence[str], positive: str | None) -> list[bool]:
    """Return who is selected; a value that is neither a known yes nor a known no is an error."""
    found = Counter(map(folded, texts))
    if positive is None and (unclear := found.keys() - YES - NO):
        raise FairnessError(
            f"{file}: it is not clear which values of the column {column!r} mean selected. Its values are "
            f"{_shown(found)}, of which {one_line(min(unclear), 30)!r} is neither yes nor no. Name the one that means "
            "selected with --selected-value."
        )
    if positive is not None and folded(positive) not in found:
        raise FairnessError(
            f"{file}: no row has {positive!r} in the column {column!r}, whose values are {_shown(found)}. Name one of "
            "them with --selected-value."
        )
    wanted = YES if positive is None else {folded(positive)}
    return [folded(text) in wanted for text in texts]


def _numbers(file: str, column: str, texts: Sequence[tuple[int, str]]) -> list[float]:
    numbers = []
    for line, text in texts:
        try:
            number = float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise FairnessError(
                f"{file}:{line}: the score in the column {column!r} must be a number, not {text[:60]!r}. Write the "
                "score, or leave out the rows of people whom the tool did not assess."
            )
        numbers.append(number)
    return numbers


def _shown(found: Counter[str]) -> str:
    return joined([f"{one_line(value, 30) or 'empty'!r} ({count})" for value, count in found.most_common()])


# Rendering: sentences and tables that all formats share.

RULE = "6 RCNY § 5-300 to 5-304 (rules on Local Law 144 of 2021 of the City of New York)"


def definitions(summary: ImpactSummary) -> list[str]:
    """Return the sentences that say how the numbers are computed."""
    if summary.median is None:
        rate = "Selection rate: number of selected applicants of a category divided by its number of applicants."
    else:
        rate = (
            "Scoring rate: share of a category’s applicants whose score is above the median of all "
            f"{summary.applicants:,} applicants, which is {summary.median:g}. {summary.tied:,} scores equal the "
            "median, and are not above it."
        )
    name = summary.rate_name
    small = (
        f"Categories with less than {SMALL_SHARE:.0%} of all applicants are left out of the impact ratios, as "
        "§ 5-301 (d) allows, because a rate of so few people says little; their applicants and rates are listed."
    )
    return [
        rate,
        f"Impact ratio: {name} of a category divided by the highest {name} of a category of its table.",
        small,
    ]


def unknown_sentences(summary: ImpactSummary) -> list[str]:
    """Return how many applicants are of an unknown category, and which values of the file mean unknown."""
    found = []
    for name, number in summary.unknown.items():
        values = ", ".join(f"{value}: {count:,}" for value, count in summary.unknown_values[name].items())
        found.append(
            f"{name} is unknown for {number:,} of {summary.applicants:,} applicants{values and f' ({values})'}."
        )
    if len(summary.tables) > len(summary.unknown):
        both = summary.tables[-1]
        found.append(
            f"{both.unknown:,} applicants are in no category of both together, because at least one is unknown."
        )
    return found


def low_ratios(summary: ImpactSummary) -> str:
    """Return a sentence about the ratios below four fifths."""
    found = [f"{', '.join(category.names)} {category.ratio:.3f}" for _, category in summary.below_four_fifths]
    return (
        f"Impact ratios below four fifths (0.80): {'; '.join(found) if found else 'none'}. Local Law 144 sets no "
        "threshold; four fifths is the rule of thumb of 29 CFR § 1607.4 (D)."
    )


def sheet_of(summary: ImpactSummary, table_: ImpactTable) -> Sheet:
    """Return a table for readers, with a last row for people of an unknown category."""
    rows = []
    for category in table_.categories:
        ratio = "not defined" if category.ratio is None else f"{category.ratio:.3f}"
        if category.excluded:
            ratio = f"left out (under {SMALL_SHARE:.0%})"
        counts = f"{category.applicants:,}", f"{category.selected:,}", f"{category.rate:.1%}"
        rows.append([*category.names, *counts, ratio])
    blank = [""] * (len(table_.attributes) - 1)
    rows.append(["unknown", *blank, f"{table_.unknown:,}", "", "", "not in a category"])
    columns = [*table_.attributes, "applicants", summary.selected_name, summary.rate_name, "impact ratio"]
    made = [f"{name} {summary.facts[name]}" for name in ("date of the audit", "computed by") if name in summary.facts]
    caption = "; ".join([f"{summary.applicants:,} applicants", *made])
    return Sheet(caption, columns, rows, heads=len(table_.attributes))


def page(summary: ImpactSummary) -> Page:
    """Return the summary as a page with each table on a sheet of its own."""
    return Page(
        "Summary of the bias audit",
        [*summary.facts.items()],
        [
            Section(
                "Applicants",
                [
                    f"{summary.applicants:,} applicants; {summary.selected_name}: {summary.selected:,}.",
                    *unknown_sentences(summary),
                    low_ratios(summary),
                ],
            ),
            Section("How it is computed", [*definitions(summary), f"Rule: {RULE}."]),
            *(Section(each.title, (), [sheet_of(summary, each)], own_page=True) for each in summary.tables),
        ],
    )


def as_json(summary: ImpactSummary) -> str:
    return json.dumps(asdict(summary), ensure_ascii=False, indent=2) + "\n"


def rendered(summary: ImpactSummary, suffix: str) -> str:
    """Return the text of a file with this suffix, one of `pages.FORMATS`; JSON holds the numbers themselves."""
    return as_json(summary) if suffix == ".json" else FORMATS[suffix](page(summary))
