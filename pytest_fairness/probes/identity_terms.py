"""Identity terms in generation probes: axes, terms that are swapped in prompts, terms that are removed from answers."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import filterfalse
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, field_serializer

from pytest_fairness.errors import ProbeError, counted
from pytest_fairness.languages import Language
from pytest_fairness.languages.swap_terms import GENDER, SwapTerms, SwapTermsError
from pytest_fairness.languages.swapping import LeftOut, Swap, swap
from pytest_fairness.probes import diagnostics, field_types, table
from pytest_fairness.probes.diagnostics import Diagnostic, Location, diagnostics_error, errors_at, quoted, suggestion
from pytest_fairness.probes.field_types import Identifier, Line, ProbeModel, Text, canonical, list_or_other
from pytest_fairness.probes.table import ID_DIGITS, DataFile, PromptRow, PromptsFile, as_line
from pytest_fairness.records import Json

# The key `swap` of a generation probe: the groups, and the terms that are swapped in prompts.

PLACEBO = "placebo"
"""Name of the group whose prompts name the unmarked group in other words."""
OWN_LIST = "{unmarked: …, marked: […], terms: [[…, …], …]}"

TermRows = Annotated[
    tuple[Annotated[tuple[Line, ...], Field(min_length=2)], ...], Field(min_length=1, json_schema_extra={"minItems": 1})
]


class TermsFile(DataFile):
    """Corresponding terms in a file, with one column for each group."""

    holds = "terms"


Names = Annotated[tuple[Line, ...], Field(min_length=1)]
OneGroup = Annotated[
    Annotated[Line, Tag("other")] | Annotated[dict[Line, Names], Tag("mapping"), Field(min_length=1, max_length=1)],
    Discriminator(field_types.mapping_or_other),
]
"""Type of one group: its value, or its name with a list of names that stand for it: `{men: [Joseph, David]}`."""
SeveralGroups = Annotated[
    Annotated[tuple[Line, ...], Tag("other"), Field(min_length=1)]
    | Annotated[dict[Line, Names], Tag("mapping"), Field(min_length=1)],
    Discriminator(field_types.mapping_or_other),
]


class SwapSettings(ProbeModel):
    """Groups whose terms are swapped, and the terms."""

    unmarked: OneGroup | None = Field(
        default=None,
        description="The group with which the marked groups are compared. {men: [Joseph, David]} lists names, of which "
        "one in a prompt is replaced by each name of each group. Default: the first group of a built-in list.",
    )
    marked: SeveralGroups | None = Field(
        default=None,
        description="The groups that are compared with the unmarked group, as a list or as {women: [Kelly, Anna]}. "
        "Default, for a built-in list: the first group of the list that is not the unmarked group.",
    )
    terms: (
        Annotated[
            Annotated[TermRows, Tag("other")] | Annotated[TermsFile, Tag("mapping")],
            Discriminator(field_types.mapping_or_other),
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
    Discriminator(field_types.text_or_other),
]
"""Type of the key `swap`: the name of a built-in list, or one name with settings."""


class Axis(ProbeModel):
    """Axis: one attribute by which groups differ."""

    written_unmarked: OneGroup = Field(
        alias="unmarked",
        description="The value with which the marked values are compared.",
    )
    written_marked: SeveralGroups = Field(
        alias="marked",
        description="The values that are compared with the unmarked value.",
    )

    @property
    def unmarked(self) -> str:
        return str(
            next(iter((self.written_unmarked,) if isinstance(self.written_unmarked, str) else self.written_unmarked))
        )

    @property
    def marked(self) -> tuple[str, ...]:
        return tuple(self.written_marked)

    @property
    def values(self) -> tuple[str, ...]:
        return (self.unmarked, *self.marked)

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names that stand for each group; empty if the values themselves are compared."""
        written = (self.written_unmarked, self.written_marked)
        return {group: names for each in written if isinstance(each, Mapping) for group, names in each.items()}

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what takes the place of the placeholder: all names, or all values."""
        return tuple(name for names in self.names.values() for name in names) or self.values

    def labels(self, axis: str) -> list[dict[str, str]]:
        """Return the labels of each text: its group and, of a name, the name."""
        if not self.names:
            return [{axis: value} for value in self.values]
        return [{axis: group, name_label(axis): name} for group, names in self.names.items() for name in names]


def name_label(axis: str) -> str:
    """Return the label that holds the name, for an axis whose groups are lists of names; no axis is called so."""
    return f"{axis} name"


@dataclass(frozen=True)
class SwapLists:
    """Groups and terms of a probe's swap.

    Attributes:
        own_placebo: pairs of terms for the unmarked group, declared under `placebo`; `None` if no pairs are declared.
    """

    name: str
    axis: Axis
    terms: SwapTerms
    own_placebo: SwapTerms | None
    has_placebo: bool

    @classmethod
    def of(cls, swap: Swaps, language: Language) -> SwapLists:
        name, settings = (swap, SwapSettings()) if isinstance(swap, str) else next(iter(swap.items()))
        code = language.codes[0]
        if isinstance(settings.unmarked, Mapping) and isinstance(settings.marked, Mapping):
            axis = Axis(unmarked=settings.unmarked, marked=settings.marked)
            return cls(name, axis, _terms_of_rows(("swap", name), axis.texts, [axis.texts], code), None, False)
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
        columns = [self.terms.groups.index(group) for group in self.axis.texts]
        found = [row[column] for row in self.terms.rows for column in columns]
        return (*found, *(term for row in self.own_placebo.rows for term in row)) if self.own_placebo else tuple(found)

    def content(self, groups: Sequence[str]) -> Json:
        """Return the list's name and language, and the terms that the probe declares for these groups.

        The order of the terms has no effect.
        """
        columns = [self.terms.groups.index(text) for group in groups for text in self.axis.names.get(group, (group,))]
        rows = sorted([row[column] for column in columns] for row in self.terms.rows)
        return {"list": self.terms.name, "language": self.terms.code, "terms": rows}


def _built_in(name: str, settings: SwapSettings, code: str) -> tuple[Axis, SwapTerms]:
    try:
        terms = SwapTerms.built_in(name, code)
    except LookupError as error:
        meant = name != GENDER and diagnostics.nearest(name, [GENDER])
        cure = f"did you mean {quoted(meant)}?" if meant else f"write your own list: `swap: {{{name}: {OWN_LIST}}}`"
        message = f"{str(error.args[0]).rstrip('.')}: {cure}"
        raise diagnostics_error([Diagnostic(("swap", name), message)]) from None
    unmarked = str(settings.unmarked or terms.groups[0])
    marked = tuple(settings.marked or [group for group in terms.groups[:2] if group != unmarked][:1])
    diagnostics.raise_diagnostics(
        Diagnostic(
            ("swap", name, *place),
            f"the list {quoted(name)} has no group {quoted(group)}{suggestion(group, terms.groups)}",
        )
        for place, group in [(("unmarked",), unmarked), *((("marked", i), group) for i, group in enumerate(marked))]
        if group not in terms.groups
    )
    return Axis(unmarked=unmarked, marked=marked), terms


def _own(name: str, settings: SwapSettings, code: str) -> tuple[Axis, SwapTerms]:
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
    try:
        return SwapTerms.of_rows(groups, rows, code)
    except SwapTermsError as error:
        place = location if error.row is None else (*location, error.row - 1)
        raise diagnostics_error([Diagnostic(place, _in_message(error))]) from None


def _terms_of_file(file: TermsFile, groups: Sequence[str], code: str) -> SwapTerms:
    name = file.file.name
    content = table.read(file.file, name, file.holds)
    diagnostics.raise_file_errors(
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


# Versions of a user's own prompts for each group, made by swapping terms, and the prompts that are left out.

LEAST_ANSWERS = 8
"""Minimum number of usable answers of each group for audits of texts."""
SHOWN_REASONS = 5
_QUOTED = re.compile(r"'.*'")
_WORD = re.compile(r"\w[\w-]*")


@dataclass(frozen=True)
class SwappedPrompt:
    """A prompt with its versions.

    Attributes:
        versions: text of the prompt for each group. If a placebo is possible, the key `PLACEBO` has a text that names
            the unmarked group with other words.
        warnings: reasons why a person should check the versions before use.
    """

    row: PromptRow
    group: str
    versions: Mapping[str, str]
    warnings: tuple[str, ...]
    placebo_terms: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Digest of the prompt's texts for all groups; two runs are compared on the prompts with equal digests."""
        versions = sorted((group, text) for group, text in self.versions.items() if group != PLACEBO)
        return sha256(canonical(versions).encode()).hexdigest()[:ID_DIGITS]

    @property
    def terms(self) -> frozenset[str]:
        """The words in which the versions for the groups differ, and the terms of the placebo, as written."""
        words = [{*_WORD.findall(text)} for group, text in self.versions.items() if group != PLACEBO]
        return frozenset({*self.placebo_terms}.union(*words) - set.intersection(*words))


@dataclass(frozen=True)
class LeftOutPrompt:
    row: PromptRow
    reason: str


@dataclass(frozen=True)
class SwappedPrompts:
    """Prompts of a probe with their versions.

    Attributes:
        prompts: the prompts that are sent, in the order of the file.
        left_out: prompts in which no swap is possible, in the order of the file.
    """

    prompts: tuple[SwappedPrompt, ...]
    left_out: tuple[LeftOutPrompt, ...]
    not_examined: int = 0

    @property
    def reasons(self) -> Counter[str]:
        """Return the number of left-out prompts by reason; `…` stands for words quoted from a prompt."""
        return Counter(_QUOTED.sub("…", prompt.reason) for prompt in self.left_out)


def swapped(row: PromptRow, lists: SwapLists) -> SwappedPrompt | LeftOutPrompt:
    groups, unmarked = lists.axis.texts, lists.axis.unmarked
    result = swap(row.text, lists.terms, groups)
    if isinstance(result, LeftOut):
        return LeftOutPrompt(row, result.reason)
    versions = {group: result.versions[group] for group in groups}
    placebo = _placebo(result, lists) if lists.has_placebo else None
    if placebo is None or placebo == versions[unmarked]:
        return SwappedPrompt(row, result.group, versions, result.warnings)
    versions[PLACEBO] = placebo
    swapped_placebo = swap(placebo, lists.terms, groups)
    terms = tuple(term for term, _ in swapped_placebo.replaced) if isinstance(swapped_placebo, Swap) else ()
    return SwappedPrompt(row, result.group, versions, result.warnings, terms)


def _placebo(swapped: Swap, lists: SwapLists) -> str | None:
    """Return the placebo of a swapped prompt, which names the unmarked group; `None` if no placebo is possible."""
    unmarked = lists.axis.unmarked
    if lists.own_placebo is not None:
        other = swap(swapped.versions[unmarked], lists.own_placebo, (unmarked, PLACEBO))
        return other.versions[PLACEBO] if isinstance(other, Swap) else None
    if swapped.group == unmarked:
        return swapped.placebo
    own = swap(swapped.versions[unmarked], lists.terms, lists.axis.values)
    return own.placebo if isinstance(own, Swap) and own.group == unmarked else None


def swapped_rows(rows: Iterable[PromptRow], lists: SwapLists, most: int | None = None) -> SwappedPrompts:
    """Return the versions of up to `most` prompts, in the order of examination; further rows are not examined."""
    prompts: list[SwappedPrompt] = []
    left_out: list[LeftOutPrompt] = []
    not_examined = 0
    for row in rows:
        if most is not None and len(prompts) == most:
            not_examined += 1
        elif isinstance(found := swapped(row, lists), SwappedPrompt):
            prompts.append(found)
        else:
            left_out.append(found)
    return SwappedPrompts(
        tuple(sorted(prompts, key=lambda prompt: prompt.row.line)),
        tuple(sorted(left_out, key=lambda prompt: prompt.row.line)),
        not_examined,
    )


def swapped_file(file: PromptsFile, lists: SwapLists) -> SwappedPrompts:
    """Return the versions of the prompts in a file; only prompts in which a swap is possible count for the sample."""
    found = swapped_rows(file.in_sample_order(), lists, file.sample)
    name = file.file.name
    if not found.prompts:
        diagnostics.raise_file_errors(
            [f"{name}:{prompt.row.line}: no swap: {prompt.reason}" for prompt in found.left_out], name
        )
    if len(found.prompts) < (file.sample or 1):
        total = len(found.prompts) + len(found.left_out)
        raise ProbeError(
            f"{name}:1: a swap is possible in only {len(found.prompts)} of {counted(total, 'prompt')}: set `sample` to "
            f"at most {len(found.prompts)}, or add prompts. Left out: {listed_reasons(found)}"
        )
    return found


def swap_diagnostics(swapped_prompts: SwappedPrompts, trials: int, *, in_file: bool) -> Iterator[Diagnostic]:
    key = "prompts" if in_file else "prompt"
    if not in_file:
        several = len(swapped_prompts.prompts) + len(swapped_prompts.left_out) > 1
        for prompt in swapped_prompts.left_out:
            location: Location = (key, prompt.row.line - 1) if several else (key,)
            yield Diagnostic(location, f"no swap: {prompt.reason}")
    if swapped_prompts.prompts and trials < LEAST_ANSWERS:
        message = (
            f"each group gets only {counted(trials, 'answer')}, and audits of texts need {LEAST_ANSWERS}: raise "
            "`trials`, or add prompts in which a swap is possible"
        )
        yield Diagnostic((key,), message, at_key=True)


def listed_reasons(swapped_prompts: SwappedPrompts) -> str:
    """Return the most frequent reasons why prompts are left out, with their numbers of prompts, as a phrase."""
    reasons = swapped_prompts.reasons
    text = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(SHOWN_REASONS))
    more = len(reasons) - SHOWN_REASONS
    return f"{text}; and {counted(more, 'other reason')}" if more > 0 else text


# Axes of a generation probe: the attributes by which groups differ.

Intersection = Annotated[tuple[Line, ...], Field(json_schema_extra={"minItems": 2, "uniqueItems": True})]
"""Type of an intersection: the names of two or more axes whose marked values are compared jointly."""


# The key `anonymize` of a generation probe: terms and names that are removed from answers.

Terms = Annotated[tuple[Text, ...], Field(min_length=1)]


def _needs_package(names_given: bool) -> bool:
    if not has_name_lists():
        raise ValueError('the list of first names needs the package faker: pip install "pytest-fairness[names]"')
    return names_given


def _is_name(name: str) -> str:
    if not name_forms([name]):
        raise ValueError("must be a name with at least two letters")
    return name


class Anonymize(ProbeModel):
    """Terms and names that are removed from answers, in addition to built-in identity terms and the axes' values."""

    terms: Terms = Field(default=(), description="Terms that are removed from the answers.")
    names: (
        Annotated[tuple[Annotated[Line, AfterValidator(_is_name)], ...], Field(min_length=1)]
        | Annotated[Literal[True], AfterValidator(_needs_package)]
        | None
    ) = Field(
        default=None,
        description="First names that are removed if they have a capital letter: true for a packaged list, or your "
        "own list.",
    )

    @property
    def first_names(self) -> frozenset[str]:
        return frozenset(packaged_names()) if self.names is True else name_forms(self.names or ())

    @field_serializer("names")
    def _digest_of_list(self, given: tuple[str, ...] | bool | None) -> Json:
        """Serialize `true` as the digest of the packaged list, because measurements depend on the list's content."""
        return names_digest() if given is True else given


RemovedTerms = Terms | Literal[False] | Anonymize
"""Type of the key `anonymize`: terms, `false` to remove nothing, or terms and names."""


def terms_of(given: RemovedTerms) -> tuple[str, ...] | None:
    """Return the terms that are removed in addition to the built-in terms; `None` if no terms are removed."""
    if given is False:
        return None
    return given.terms if isinstance(given, Anonymize) else given


def removal_fingerprint(given: RemovedTerms) -> Json:
    """Return the removed terms and names for the fingerprint, sorted; `False` if nothing is removed.

    The packaged list of names is represented by its digest.
    """
    declared = terms_of(given)
    removed = False if declared is None else sorted({*declared})
    if not isinstance(given, Anonymize) or given.names is None:
        return removed
    names = names_digest() if given.names is True else sorted(name_forms(given.names))
    return {"terms": removed, "names": names}


# First names that `anonymize: {names: true}` removes: the name lists of the package Faker, and additional names.


@cache
def first_names(key: str) -> tuple[str, ...]:
    """Return a list of `first_names.toml`; its comments say what each key holds."""
    path = files("pytest_fairness.languages").joinpath("data", "first_names.toml")
    return tuple(tomllib.loads(path.read_text("utf-8"))[key].split())


@cache
def also_words() -> frozenset[str]:
    """Return the names that are also ordinary words."""
    return frozenset(first_names("also_words"))


def has_name_lists() -> bool:
    return find_spec("faker") is not None


@cache
def packaged_names() -> tuple[str, ...]:
    """Return the first names in Faker's lists and the added names, without ordinary words, sorted.

    The names have the form that `name_forms` returns. Faker must be installed.
    """
    found: set[str] = set()
    for locale in first_names("locales"):
        provider = import_module(f"faker.providers.person.{locale}").Provider
        # Attributes are lists or dicts of names; methods that draw a name have similar names.
        listed = [getattr(provider, attribute) for attribute in dir(provider) if attribute.startswith("first_")]
        found.update(name for names in listed if not callable(names) for name in names if isinstance(name, str))
    return tuple(sorted(name_forms([*found, *first_names("added")]) - frozenset(first_names("others"))))


@cache
def names_digest() -> str:
    """Return a digest of the packaged names, which changes if a new version of Faker changes its lists."""
    return sha256("\n".join(packaged_names()).encode()).hexdigest()[:16]


def name_forms(names: Iterable[str]) -> frozenset[str]:
    """Return each word of the names that has two or more letters, in lower case, both with and without accents."""
    words = {
        word
        for name in names
        for word in unicodedata.normalize("NFKC", name).casefold().replace("-", " ").split()
        if sum(character.isalpha() for character in word) > 1
    }
    decomposed = (unicodedata.normalize("NFD", word) for word in words)
    return frozenset(words.union("".join(filterfalse(unicodedata.combining, word)) for word in decomposed))
