"""The key `swap` of a generation probe: the groups, and the terms that are swapped in prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from pytest_fairness.errors import ProbeError
from pytest_fairness.languages.language import Language
from pytest_fairness.languages.swaps.terms import GENDER, SwapTerms, SwapTermsError
from pytest_fairness.probes import table
from pytest_fairness.probes.audit_settings import ProbeModel, list_or_other, mapping_or_other, text_or_other
from pytest_fairness.probes.data_file import DataFile, as_line
from pytest_fairness.probes.diagnostics import (
    Diagnostic,
    Location,
    diagnostics_error,
    errors_at,
    nearest,
    quoted,
    raise_diagnostics,
    raise_file_errors,
    suggestion,
)
from pytest_fairness.probes.field_types import Identifier, Line
from pytest_fairness.probes.generation.axes import Axis
from pytest_fairness.records import Json

PLACEBO = "placebo"
"""Name of the group whose prompts name the unmarked group in other words."""
OWN_LIST = "{unmarked: …, marked: […], terms: [[…, …], …]}"

TermRows = Annotated[
    tuple[Annotated[tuple[Line, ...], Field(min_length=2)], ...], Field(min_length=1, json_schema_extra={"minItems": 1})
]


class TermsFile(DataFile):
    """Corresponding terms in a file, with one column for each group."""

    holds = "terms"


class SwapSettings(ProbeModel):
    """Groups whose terms are swapped, and the terms."""

    unmarked: Line | None = Field(
        default=None,
        description="The group with which the marked groups are compared. Default: the first group of a built-in list.",
    )
    marked: Annotated[tuple[Line, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="The groups that are compared with the unmarked group. Default, for a built-in list: the first "
        "group of the list that is not the unmarked group.",
    )
    terms: (
        Annotated[
            Annotated[TermRows, Tag("other")] | Annotated[TermsFile, Tag("mapping")],
            Discriminator(mapping_or_other),
        ]
        | None
    ) = Field(
        default=None,
        description="Lists of corresponding terms, such as [[he, she], [king, queen]]: first the term of the unmarked "
        "group, then the terms of the marked groups in their order. {file: terms.csv} names a file with one column for "
        "each group. Default: the built-in list that has the name of the swap, such as `gender`.",
    )
    placebo: Annotated[
        Annotated[bool, Tag("other")] | Annotated[TermRows, Tag("list")], Discriminator(list_or_other)
    ] = Field(
        default=True,
        description="Whether each prompt is also sent with other words for the unmarked group, such as another name, "
        "to measure how much any rewording changes the answers. Pairs of terms, [[church, chapel], …], define the "
        "replaced words; false sends no placebo.",
    )


Swaps = Annotated[
    Annotated[Identifier, Tag("text")]
    | Annotated[
        dict[Identifier, SwapSettings],
        Tag("other"),
        Field(min_length=1, max_length=1, json_schema_extra={"minProperties": 1, "maxProperties": 1}),
    ],
    Discriminator(text_or_other),
]
"""Type of the key `swap`: the name of a built-in list, or one name with settings."""


@dataclass(frozen=True)
class SwapLists:
    """Groups and terms of a probe's swap.

    Attributes:
        name: name of the probe's axis.
        axis: axis whose values are the compared groups.
        terms: the groups and terms of the list; a built-in list can have groups that are not compared.
        own_placebo: pairs of terms for the unmarked group, declared under `placebo`; `None` if no pairs are declared.
        has_placebo: whether prompts get a placebo.
    """

    name: str
    axis: Axis
    terms: SwapTerms
    own_placebo: SwapTerms | None
    has_placebo: bool

    @classmethod
    def of(cls, swap: Swaps, language: Language) -> SwapLists:
        """Return the groups and terms that the key `swap` declares.

        Args:
            swap: value of the key `swap`.
            language: language of the probe; the first of several languages is the language of the prompts.

        Raises:
            ValidationError: no built-in list has this name, the built-in list lacks a group, the groups of a list of
                the user are not named, its file cannot be read, or its terms are not paired one to one.
        """
        name, settings = (swap, SwapSettings()) if isinstance(swap, str) else next(iter(swap.items()))
        code = language.codes[0]
        axis, terms = _built_in(name, settings, code) if settings.terms is None else _own(name, settings, code)
        own_placebo = None
        if not isinstance(settings.placebo, bool):
            own_placebo = _terms_of_rows(("swap", name, "placebo"), (axis.unmarked, PLACEBO), settings.placebo, code)
        return cls(name, axis, terms, own_placebo, bool(settings.placebo))

    @property
    def removed_terms(self) -> tuple[str, ...]:
        """The terms that the probe declares for the compared groups and for the placebo; they are removed from answers.

        The terms of a built-in list are not included; see `GenerationProbe.swapped_terms`.
        """
        columns = [self.terms.groups.index(group) for group in self.axis.values]
        found = [row[column] for row in self.terms.rows for column in columns]
        return (*found, *(term for row in self.own_placebo.rows for term in row)) if self.own_placebo else tuple(found)

    def content(self, groups: Sequence[str]) -> Json:
        """Return the list's name and language, and the terms that the probe declares for these groups.

        The order of the terms has no effect.
        """
        columns = [self.terms.groups.index(group) for group in groups]
        rows = sorted([row[column] for column in columns] for row in self.terms.rows)
        return {"list": self.terms.name, "language": self.terms.code, "terms": rows}


def _built_in(name: str, settings: SwapSettings, code: str) -> tuple[Axis, SwapTerms]:
    """Return the compared groups and the terms of a built-in list."""
    try:
        terms = SwapTerms.built_in(name, code)
    except LookupError as error:
        meant = name != GENDER and nearest(name, [GENDER])
        cure = f"did you mean {quoted(meant)}?" if meant else f"write your own list: `swap: {{{name}: {OWN_LIST}}}`"
        message = f"{str(error.args[0]).rstrip('.')}: {cure}"
        raise diagnostics_error([Diagnostic(("swap", name), message)]) from None
    unmarked = settings.unmarked or terms.groups[0]
    marked = settings.marked or tuple(group for group in terms.groups[:2] if group != unmarked)[:1]
    raise_diagnostics(
        Diagnostic(
            ("swap", name, *place),
            f"the list {quoted(name)} has no group {quoted(group)}{suggestion(group, terms.groups)}",
        )
        for place, group in [(("unmarked",), unmarked), *((("marked", i), group) for i, group in enumerate(marked))]
        if group not in terms.groups
    )
    return Axis(unmarked=unmarked, marked=marked), terms


def _own(name: str, settings: SwapSettings, code: str) -> tuple[Axis, SwapTerms]:
    """Return the compared groups and the terms of a list that the probe declares."""
    if settings.unmarked is None or settings.marked is None:
        key = "unmarked" if settings.unmarked is None else "marked"
        message = f"`swap.{name}.{key}` is missing: a list of your own needs the names of its groups"
        raise diagnostics_error([Diagnostic(("swap", name), message)])
    axis = Axis(unmarked=settings.unmarked, marked=settings.marked)
    location = ("swap", name, "terms")
    if not isinstance(settings.terms, TermsFile):
        return axis, _terms_of_rows(location, axis.values, settings.terms or (), code)
    with errors_at(*location):
        terms = _terms_of_file(settings.terms, axis.values, code)
    return axis, terms


def _terms_of_rows(location: Location, groups: Sequence[str], rows: Sequence[Sequence[str]], code: str) -> SwapTerms:
    """Return the terms in the rows of a list, which the probe file holds at `location`.

    Raises:
        ValidationError: the terms are not paired one to one.
    """
    try:
        return SwapTerms.of_rows(groups, rows, code)
    except SwapTermsError as error:
        place = location if error.row is None else (*location, error.row - 1)
        raise diagnostics_error([Diagnostic(place, _in_message(error))]) from None


def _terms_of_file(file: TermsFile, groups: Sequence[str], code: str) -> SwapTerms:
    """Return the terms in a file.

    Raises:
        ProbeError: the file cannot be read, lacks the column of a group, or its terms are not paired one to one.
    """
    name = file.file.name
    content = table.read(file.file, name, file.holds)
    raise_file_errors(
        [
            f"{name}:1: no column {quoted(group)} with the terms of this group{suggestion(group, content.columns)}"
            for group in groups
            if group not in content.columns
        ],
        name,
    )
    rows = [[as_line(row.fields.get(group)) for group in groups] for row in content.rows]
    try:
        return SwapTerms.of_rows(groups, rows, code)
    except SwapTermsError as error:
        line = 1 if error.row is None else content.rows[error.row - 1].line
        raise ProbeError(f"{name}:{line}: {_in_message(error)}") from None


def _in_message(error: SwapTermsError) -> str:
    """Return the error's message without its capital letter and full stop, to follow a position in the file."""
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:]
