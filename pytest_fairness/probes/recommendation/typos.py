"""Reproducible typing errors in a given share of a text's letters, with a list of the errors for reports."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pytest_fairness.probes.prompts import template
from pytest_fairness.records import Json

Operation = Literal["swap", "drop", "insert", "replace"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One typing error: at `position` of the clean text, `before` became `after`."""

    operation: Operation
    position: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Perturbed:
    """Text with typing errors: `text` is the result, `edits` lists the errors by position."""

    clean: str
    text: str
    edits: tuple[Edit, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the text and its typing errors as plain JSON, for reports."""
        return {"clean": self.clean, "text": self.text, "edits": [asdict(edit) for edit in self.edits]}


def error_count(letters: int, rate: float) -> int:
    """Return the number of typing errors in a text with `letters` letters: `rate` times the letters, at least one."""
    return min(letters, max(1, round(rate * letters)))


def typos(text: str, rate: float, seed: int, operations: Sequence[Operation]) -> Perturbed:
    """Return a text with typing errors; each letter belongs to at most one error.

    Args:
        text: the clean text.
        rate: share of the letters with an error, above 0 and up to 1.
        seed: the same seed makes the same errors in the same text.
        operations: the kinds of error, all equally likely.

    Returns:
        The text with the number of errors that `error_count` returns, or fewer if no further error fits (a swap
        needs two different letters).
    """
    return _perturbed(text, range(len(text)), rate, seed, operations)


def typos_in_template(text: str, rate: float, seed: int, operations: Sequence[Operation]) -> Perturbed:
    """Return a prompt template with typing errors in its text; placeholders stay unchanged. Arguments as in `typos`."""
    inside = {position for start, end in template.spans(text) for position in range(start, end)}
    return _perturbed(text, [place for place in range(len(text)) if place not in inside], rate, seed, operations)


def _perturbed(text: str, allowed: Iterable[int], rate: float, seed: int, operations: Sequence[Operation]) -> Perturbed:
    rng = random.Random(f"{seed}/{text}")  # noqa: S311 - reproducible errors, no secrets
    letters = [place for place in allowed if text[place].isalpha()]
    unused = set(letters)
    edits: list[Edit] = []
    count = error_count(len(letters), rate) if letters else 0
    for place in rng.sample(letters, len(letters)):
        if len(edits) == count:
            break
        if place not in unused:
            continue
        for operation in rng.sample(operations, len(operations)):
            edit = _edit(text, place, operation, unused, rng)
            if edit is not None:
                edits.append(edit)
                unused -= set(range(place, place + len(edit.before)))
                break
    edits.sort(key=lambda edit: edit.position)
    return Perturbed(text, _with_edits(text, edits), tuple(edits))


def _edit(text: str, place: int, operation: Operation, unused: set[int], rng: random.Random) -> Edit | None:
    """Return a typing error at the index `place` of the text; `None` if the operation is not possible there.

    Args:
        text: the clean text.
        place: index of a letter.
        operation: the kind of error.
        unused: indices of the letters that belong to no error yet.
        rng: random generator.
    """
    letter = text[place]
    other = rng.choice([choice for choice in string.ascii_lowercase if choice != letter.casefold()])
    other = other.upper() if letter.isupper() else other
    match operation:
        case "swap":
            following = text[place + 1 : place + 2]
            if place + 1 not in unused or following == letter:
                return None
            return Edit("swap", place, letter + following, following + letter)
        case "drop":
            return Edit("drop", place, letter, "")
        case "insert":
            return Edit("insert", place, letter, letter + other)
        case "replace":
            return Edit("replace", place, letter, other)


def _with_edits(text: str, edits: Iterable[Edit]) -> str:
    pieces, end = [], 0
    for edit in edits:
        pieces += [text[end : edit.position], edit.after]
        end = edit.position + len(edit.before)
    return "".join([*pieces, text[end:]])
