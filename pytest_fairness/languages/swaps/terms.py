"""Lists of terms that name groups; each row has one term for each group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_fairness.errors import FairnessError

GENDER = "gender"
"""Name of the built-in list."""
BUILT_IN = {
    "en": ("male", "female", "neutral"),
    "de": ("male", "female"),
    "fr": ("male", "female"),
    "es": ("male", "female"),
}
"""Groups of the built-in list of each language."""


class SwapTermsError(FairnessError):
    """Error in a list of terms, whose rows must pair the terms of the groups one to one.

    Args:
        message: complete message for the user.
        row: number of the row with the error, from 1; `None` for an error of the groups or of the whole list.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class SwapTerms:
    """Terms of groups in one language.

    Attributes:
        groups: names of the groups, in the order of the terms in a row.
        rows: rows with one term for each group; empty for a built-in list, whose terms are in a data file.
        code: ISO 639 code of the language of the terms.
        name: name of a built-in list; "" for a list of the user.
    """

    groups: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    code: str = "en"
    name: str = ""

    @classmethod
    def of_rows(cls, groups: Sequence[str], rows: Iterable[Sequence[str]], code: str = "en") -> SwapTerms:
        """Return the list of terms that a user gives.

        Args:
            groups: names of the groups.
            rows: rows with one term for each group. Terms in lower case match any capitalisation.
            code: ISO 639 code of the language of the terms.

        Raises:
            SwapTermsError: there are fewer than two groups, two groups have the same name, there are no rows, or the
                terms are not paired one to one.
        """
        if len(groups) < 2 or len(set(groups)) < len(groups):
            raise SwapTermsError(f"A swap needs two or more different groups, not {', '.join(groups) or 'none'}.")
        checked: list[tuple[str, ...]] = []
        seen: dict[str, tuple[int, str]] = {}
        for number, row in enumerate(rows, 1):
            if len(row) != len(groups):
                raise SwapTermsError(
                    f"Row {number} has {len(row)} terms. Give one term for each group: {', '.join(groups)}.", number
                )
            terms = tuple(" ".join(term.split()) for term in row)
            for group, term in zip(groups, terms, strict=True):
                if not term:
                    raise SwapTermsError(
                        f"Row {number} has no term for {group}. Add the term, or remove the row.", number
                    )
                if before := seen.get(term.casefold()):
                    raise SwapTermsError(
                        f"'{term}' of {group} in row {number} is also a term of {before[1]} in row {before[0]}. "
                        "Give each term once, so that it has one counterpart.",
                        number,
                    )
                seen[term.casefold()] = number, group
            checked.append(terms)
        if not checked:
            raise SwapTermsError("The list of terms has no rows. Add a row with one term for each group.")
        return cls(tuple(groups), tuple(checked), code)

    @classmethod
    def built_in(cls, name: str, code: str) -> SwapTerms:
        """Return a built-in list: `gender` of English, German, French or Spanish.

        Raises:
            LookupError: there is no such list.
        """
        if name == GENDER and code in BUILT_IN:
            return cls(BUILT_IN[code], (), code, name)
        raise LookupError(f"There is no built-in list '{name}' for the language '{code}'.")
