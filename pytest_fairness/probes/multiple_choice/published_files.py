"""Reader of the lines of BBQ's published files (Parrish et al. 2022): JSON Lines, one question per line.

`answer_info` holds, for each option, a label and a group code; the code `unknown` marks the option for an unknown
person. `additional_metadata.stereotyped_groups` lists the groups that the stereotype is about. The spelling of a group
may differ between the two fields: `lowSES` and `low SES`, `F-Black` and `Black`, `woman` and `F`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_fairness.probes.field_types import CASE, PATTERNS
from pytest_fairness.probes.multiple_choice.question import Question, Role
from pytest_fairness.records import Json

OPTIONS = ("ans0", "ans1", "ans2")
UNKNOWN = "unknown"

_TEXTS = ("question_index", "question_polarity", "context_condition", "category", "context", "question", *OPTIONS)
_POLARITIES = ("neg", "nonneg")
_CONDITIONS = ("ambig", "disambig")
_SEPARATOR = re.compile(r"[-_]")
_GENDERS = {"woman": "f", "women": "f", "girl": "f", "girls": "f", "man": "m", "men": "m", "boy": "m", "boys": "m"}


class InvalidRow(Exception):
    """Error for a row of a file that holds no valid question; its arguments are the messages."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The messages, one for each error."""
        return self.args


def question(row: Mapping[str, Json]) -> Question:
    """Return the question of one line of a published file.

    Raises:
        InvalidRow: the line lacks a field, a field is invalid, or fields contradict each other.
    """
    errors = [
        f"{name!r} is missing" if name not in row else f"{name!r} must be text that is not empty"
        for name in _TEXTS
        if not (isinstance(row.get(name), str) and row[name].strip())
    ]
    errors += [
        f"{name!r} {PATTERNS[CASE]}"
        for name in ("category", "question_index", "example_id")
        if str(row.get(name, "")).strip() and not re.search(CASE, str(row[name]))
    ]
    errors += [f"{name!r} is missing" for name in ("example_id", "label", "answer_info") if name not in row]
    errors += [
        f"{name!r} must be {' or '.join(map(repr, valid))}, not {str(row[name])[:40]!r}"
        for name, valid in (("question_polarity", _POLARITIES), ("context_condition", _CONDITIONS))
        if isinstance(row.get(name), str) and row[name].strip() and row[name] not in valid
    ]
    if "example_id" in row and (isinstance(row["example_id"], bool) or not isinstance(row["example_id"], int | str)):
        errors.append("'example_id' must be a whole number or text")
    if "label" in row and (isinstance(row["label"], bool) or row["label"] not in (0, 1, 2)):
        errors.append("'label' must be 0, 1 or 2: the number of the right option")
    answers = _named_options(row.get("answer_info")) if "answer_info" in row else []
    groups = _groups(row.get("additional_metadata"))
    if answers is None:
        errors.append("'answer_info' must hold a label and a group code for each of ans0, ans1 and ans2")
    elif answers and sum(code == UNKNOWN for _, code in answers) != 1:
        errors.append("'answer_info' must give exactly one option the group code 'unknown'")
    if groups is None:
        errors.append("'additional_metadata' must hold 'stereotyped_groups', a list of groups")
    if errors or not answers or groups is None:
        raise InvalidRow(*errors)
    options = (row["ans0"].strip(), row["ans1"].strip(), row["ans2"].strip())
    if len({option.casefold() for option in options}) < len(options):
        raise InvalidRow("two options have the same text: write three different options")
    if (row["context_condition"] == "ambig") != (answers[row["label"]][1] == UNKNOWN):
        raise InvalidRow(
            "the right answer must be the unknown option if the context is 'ambig', and another option otherwise"
        )
    return Question(
        name=f"{row['category']}-{row['example_id']}",
        template=row["question_index"],
        category=row["category"],
        context=row["context"].strip(),
        text=row["question"].strip(),
        negative=row["question_polarity"] == "neg",
        options=options,
        roles=roles(answers, groups),
        answer=row["label"],
    )


def roles(answers: Sequence[tuple[str, str]], groups: Sequence[str]) -> tuple[Role, Role, Role]:
    """Return the role of each option.

    The stereotyped person is the person whose group code has more matches in `groups`; parts of a code count as well
    (`F` and `Black` in `F-Black`). If no code matches, the labels are compared: `Indian` is the label of the code
    `AsiaPacific`. If no label matches either, a prefix `non` in the other person's code decides: of `disabled` and
    `nonDisabled`, the first is stereotyped. If no rule decides, or if both people have the same code, both get the role
    `person`: the groups of the published scores are codes, and equal codes do not tell the two people apart.

    Args:
        answers: label and group code of each option.
        groups: the stereotyped groups.
    """
    stereotyped = {_folded(group) for group in groups}
    people = [place for place, (_, code) in enumerate(answers) if code != UNKNOWN]
    codes = [_folded(answers[place][1]) for place in people]
    hits = [len(_forms(answers[place][1]) & stereotyped) for place in people]
    if not any(hits) and codes[0] != codes[1]:
        hits = [int(_folded(answers[place][0]) in stereotyped) for place in people]
    if stereotyped and not any(hits):
        hits = [int(other == f"non{code}") for code, other in zip(codes, reversed(codes), strict=True)]
    found: list[Role] = ["unknown"] * len(answers)
    for place, own, other in zip(people, hits, reversed(hits), strict=True):
        found[place] = "person" if own == other else "stereotyped" if own > other else "other"
    first, second, third = found
    return first, second, third


def _forms(code: str) -> set[str]:
    """Return a group code and its parts, in the form in which they are compared: `F-Black` is also `F` and `Black`."""
    return {_folded(code), *map(_folded, _SEPARATOR.split(code))}


def _folded(group: str) -> str:
    plain = "".join(filter(str.isalnum, group.casefold()))
    return _GENDERS.get(plain, plain)


def _named_options(written: Json) -> list[tuple[str, str]] | None:
    """Return the label and the group code of each option; `None` if `answer_info` does not hold these texts."""
    found = []
    for option in OPTIONS:
        pair = written.get(option) if isinstance(written, Mapping) else None
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            return None
        found.append((pair[0], pair[1]))
    return found


def _groups(written: Json) -> list[str] | None:
    """Return the stereotyped groups; `None` if the metadata does not hold a list of them."""
    groups = written.get("stereotyped_groups") if isinstance(written, Mapping) else None
    if not (isinstance(groups, list) and all(isinstance(group, str) for group in groups)):
        return None
    return groups
