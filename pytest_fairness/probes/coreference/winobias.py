"""Reader of the published files of WinoBias (Zhao et al. 2018).

A line is a running number and a sentence. Square brackets enclose a person and the pronouns that refer to this person:
`1 [The developer] argued with the designer because [he] did not like the design.`
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import table
from pytest_fairness.probes.diagnostics import raise_file_errors

OCCUPATIONS = (
    *("accountant", "analyst", "assistant", "attendant", "auditor", "baker", "carpenter", "cashier", "CEO", "chief"),
    *("cleaner", "clerk", "construction worker", "cook", "counselor", "designer", "developer", "driver", "editor"),
    *("farmer", "guard", "hairdresser", "housekeeper", "janitor", "laborer", "lawyer", "librarian", "manager"),
    *("mechanic", "mover", "nurse", "physician", "receptionist", "salesperson", "secretary", "sheriff", "supervisor"),
    *("tailor", "teacher", "writer"),
)
"""The forty occupations in the sentences of WinoBias; each sentence names two or more of them."""

_LINE = re.compile(r"\s*(\d{1,9})\s+(\S.*?)\s*")
_BRACKETS = re.compile(r"\[\s*([^\[\]]*?)\s*\]")
_DETERMINER = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:he|him|his|she|her|hers)", re.IGNORECASE)
_ANY_PRONOUN = re.compile(rf"\b{_PRONOUN.pattern}\b", re.IGNORECASE)
_OCCUPATION = re.compile(
    rf"\b(?:{'|'.join(sorted(OCCUPATIONS, key=len, reverse=True))})\b", re.IGNORECASE
)  # the longest first, so that "construction worker" is found as a whole


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence in one line of a WinoBias file.

    Attributes:
        text: the sentence without brackets.
        bracketed: the sentence as it is written, with brackets.
        correct: the occupation that the pronoun refers to.
        other: the other occupation in the sentence; if there are several, the first of them.
        pronoun: the last pronoun in brackets; all pronouns in brackets refer to the same person.
    """

    text: str
    bracketed: str
    correct: str
    other: str
    pronoun: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lines with the same running number: one from each of the two files.

    Attributes:
        number: the running number of both lines.
        pro, anti: the sentence of the pro-stereotyped file, and the sentence of the anti-stereotyped file.
        difference: `words` if other words than pronouns differ; `brackets` if only brackets and pronouns differ;
            `None` if only pronouns differ.
    """

    number: str
    pro: Sentence
    anti: Sentence
    difference: Literal["words", "brackets"] | None


def read(pro: Path, anti: Path) -> tuple[Pair, ...]:
    """Return the pairs of a pro-stereotyped and an anti-stereotyped file, in the order of the first file.

    Raises:
        ProbeError: a file cannot be read, or a line is invalid or has no counterpart; each line of the message is
            `file:line: message`.
    """
    files = [(path.name, _sentences(path)) for path in (pro, anti)]
    errors = [f"{name}:{line}: {error}" for name, lines in files for line, _, error in lines if isinstance(error, str)]
    (first_name, first), (second_name, second) = files
    by_number: list[dict[str, tuple[int, Sentence]]] = []
    for name, lines in files:
        numbered: dict[str, tuple[int, Sentence]] = {}
        for line, number, sentence in lines:
            if number in numbered:
                used = f"the running number {number} is already used in line {numbered[number][0]}"
                errors.append(f"{name}:{line}: {used}: remove one of the two lines")
            elif isinstance(sentence, Sentence):
                numbered[number] = line, sentence
        by_number.append(numbered)
    known = [{number for _, number, _ in lines} for lines in (first, second)]
    for name, lines, other, others in (
        (first_name, first, second_name, known[1]),
        (second_name, second, first_name, known[0]),
    ):
        errors += [
            f"{name}:{line}: {other} has no sentence with the running number {number}: add it, or remove this line"
            for line, number, _ in lines
            if number not in others
        ]
    pairs = []
    for number, (line, sentence) in by_number[0].items():
        if number not in by_number[1]:
            continue
        counterpart = by_number[1][number][1]
        if sentence.correct != counterpart.correct:
            meant = f"the {sentence.correct}, but in {second_name} to the {counterpart.correct}: correct one sentence"
            errors.append(f"{first_name}:{line}: the pronoun refers to {meant}")
        pairs.append(Pair(number, sentence, counterpart, _difference(sentence, counterpart)))
    raise_file_errors(errors, f"{first_name}, {second_name}")
    if not pairs:
        raise ProbeError(f"{first_name}:1: the file holds no sentences")
    return tuple(pairs)


def _sentences(path: Path) -> list[tuple[int, str, Sentence | str]]:
    """Return, for each non-empty line, its line number, its running number, and its sentence or error message."""
    found: list[tuple[int, str, Sentence | str]] = []
    for place, written in enumerate(table.read_text(path, path.name).splitlines(), start=1):
        if not written.strip():
            continue
        match = _LINE.fullmatch(written)
        if match is None:
            message = "a line needs a running number and a sentence, as in `1 [The nurse] … because [she] …`"
            found.append((place, f"line {place}", message))
        else:
            found.append((place, str(int(match[1])), _sentence(match[2])))
    return found


def _sentence(bracketed: str) -> Sentence | str:
    """Return the parsed sentence, or an error message."""
    inside = [match[1] for match in _BRACKETS.finditer(bracketed)]
    pronouns = [word for word in inside if _PRONOUN.fullmatch(word)]
    people = [word for word in inside if not _PRONOUN.fullmatch(word)]
    if not pronouns or len(people) != 1:
        return "brackets must enclose one person and the pronouns for this person: `[The nurse] … because [she] …`"
    text = re.sub(r"\s+", " ", _BRACKETS.sub(r"\1", bracketed))
    # The files have a blank after a bracket: "[the nurse] 's car".
    text = re.sub(r" (?=['\u2019]s\b)", "", text)
    correct = _DETERMINER.sub("", people[0]).casefold()
    named = [name.casefold() for name in _OCCUPATION.findall(text)]
    others = list(dict.fromkeys(name for name in named if name != correct))
    if correct not in named or not others:
        listed = ", ".join(dict.fromkeys(named)) or "none"
        return f"a sentence must name two occupations of WinoBias, one of them in brackets; this one names {listed}"
    # A third occupation is at the end, and no pronoun follows it: "… and reported her to the manager".
    return Sentence(text, bracketed, _listed_spelling(correct), _listed_spelling(others[0]), pronouns[-1].casefold())


def _listed_spelling(occupation: str) -> str:
    return next(name for name in OCCUPATIONS if name.casefold() == occupation)


def _difference(pro: Sentence, anti: Sentence) -> Literal["words", "brackets"] | None:
    plain, bracketed = (
        [_ANY_PRONOUN.sub("_", getattr(sentence, name)).casefold() for sentence in (pro, anti)]
        for name in ("text", "bracketed")
    )
    if plain[0] != plain[1]:
        return "words"
    return None if bracketed[0] == bracketed[1] else "brackets"
