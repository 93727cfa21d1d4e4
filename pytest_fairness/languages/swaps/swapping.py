"""Counterfactual versions of a prompt: the same text with the terms of another group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.languages.swaps import own_list, phrases, placebos
from pytest_fairness.languages.swaps.english import gender
from pytest_fairness.languages.swaps.reading import NEUTRAL, CannotSwapError, Reading, replaced
from pytest_fairness.languages.swaps.terms import GENDER, SwapTerms


@dataclass(frozen=True)
class Swap:
    """A prompt and its swapped versions.

    Attributes:
        group: group that the prompt names.
        versions: version for each requested group; for `group`, the prompt itself.
        placebo: the prompt with a change that names no other group; `None` if no such change is possible.
        replaced: terms of the prompt that the versions replace, with their positions.
        warnings: reasons to read the versions before they are used.
    """

    group: str
    versions: Mapping[str, str]
    placebo: str | None
    replaced: tuple[tuple[str, int], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """Result for a prompt whose terms cannot be swapped.

    Attributes:
        reason: why the terms cannot be swapped, as a phrase for the user.
    """

    reason: str


def swap(text: str, terms: SwapTerms, groups: Sequence[str]) -> Swap | LeftOut:
    """Return the versions of a prompt for the groups, or the reason why the prompt cannot be swapped."""
    columns = [terms.groups.index(group) for group in groups]
    try:
        reading = _read(text, terms, columns)
        versions = {group: _version(text, reading, column) for group, column in zip(groups, columns, strict=True)}
        _check_way_back(text, reading, versions, terms)
    except CannotSwapError as reason:
        return LeftOut(str(reason))
    return Swap(
        group=terms.groups[reading.column],
        versions=versions,
        placebo=placebos.placebo(text, reading, terms.code),
        replaced=tuple((item.text, item.start) for item in reading.replacements if item.is_term),
        warnings=reading.warnings,
    )


def _read(text: str, terms: SwapTerms, columns: Sequence[int]) -> Reading:
    if terms.name != GENDER:
        return own_list.read(text, terms)
    if terms.code == "en":
        return gender.read(text, terms.groups, neutral=NEUTRAL in columns)
    return phrases.read(text, terms.code, terms.groups)


def _version(text: str, reading: Reading, column: int) -> str:
    if column == reading.column:
        return text
    pieces = []
    for item in reading.replacements:
        form = item.forms[column]
        if form is None:
            raise CannotSwapError(f"'{item.text}' has no counterpart")
        pieces.append((item.start, item.text, form))
    return replaced(text, pieces)


def _check_way_back(text: str, reading: Reading, versions: Mapping[str, str], terms: SwapTerms) -> None:
    """Raise `CannotSwapError` if a version can be swapped back, but the result differs from the original text."""
    for group, version in versions.items():
        column = terms.groups.index(group)
        # Prompts are not searched for many gender-neutral forms, such as "parent" and "they".
        if column == reading.column or reading.one_way or (terms.name == GENDER and column == NEUTRAL):
            continue
        try:
            back = _read(version, terms, [reading.column])
        except CannotSwapError:
            continue
        if back.column == column and _version(version, back, reading.column) != text:
            raise CannotSwapError(
                f"the swap cannot be reversed: the version for {group}, swapped back, differs from the original text"
            )
