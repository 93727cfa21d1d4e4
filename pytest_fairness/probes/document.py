"""Probe file as a tree of values with their positions."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import Any

from pytest_fairness.probes.diagnostics import Diagnostic, Location
from pytest_fairness.records import Json


@dataclass(slots=True)
class Node:
    """One value of a probe file.

    Attributes:
        value: value of a scalar, a list of nodes, or a mapping from keys to nodes.
        start, end: position of the value, as character indices into the text.
        keys: position of each key of a mapping.
        written: the source text of an unquoted scalar; `None` for a quoted scalar, a list or a mapping.
        size: approximate number of characters of the value in the file, with each YAML alias replaced by its value.
    """

    value: Any
    start: int
    end: int
    keys: dict[str, int] = field(default_factory=dict)
    written: str | None = None
    size: int = 1

    def plain(self) -> Json:
        """Return the value as plain JSON."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


@dataclass(slots=True)
class Document:
    """Text of a probe file, its tree, and the YAML errors."""

    text: str
    root: Node
    errors: list[tuple[int, str]]
    """Errors of the YAML text: character index and message."""

    def find(self, location: Location) -> tuple[Node, Location, bool]:
        """Find the innermost node on the path to a location.

        Parts of the location that do not exist in the file are skipped: missing keys, and the names by which pydantic
        distinguishes the alternatives of a union type.

        Returns:
            The node, the node's location, and whether this location is the requested one (no part was skipped).
        """
        node, found = self.root, []
        for part in location:
            inside = part in node.value if isinstance(node.value, dict) else False
            if isinstance(node.value, list) and isinstance(part, int):
                inside = part < len(node.value)
            if inside:
                node = node.value[part]
                found.append(part)
        return node, tuple(found), len(found) == len(location)

    def index(self, diagnostic: Diagnostic) -> int:
        """Return the character index of a diagnostic.

        It is the start of the invalid key, of the invalid part of a text (`Diagnostic.piece`), or of the value.
        """
        if diagnostic.at_key and diagnostic.location:
            parent, _, _ = self.find(diagnostic.location[:-1])
            key = parent.keys.get(str(diagnostic.location[-1]))
            if key is not None:
                return key
        node, _, _ = self.find(diagnostic.location)
        inside = node.start
        for _ in range(diagnostic.occurrence + 1) if diagnostic.piece else ():
            inside = self.text.find(diagnostic.piece or "", inside + 1, node.end)
        return inside if inside >= 0 else node.start


class Lines:
    """Lines of a text; converts character indices to line and column numbers."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def position(self, index: int) -> tuple[int, int]:
        """Return the line and column of a character index; both start at 1."""
        line = bisect.bisect_right(self._starts, max(index, 0)) - 1
        return line + 1, max(index, 0) - self._starts[line] + 1


def not_text(what: str, node: Node) -> str:
    """Return the error message for a value that must be text; the message shows a number or boolean in quotes."""
    written = node.written or ""
    if node.value is None:
        return f"{what} must be text, but nothing is written"
    if isinstance(node.value, bool):
        return f'{what} must be text, but {written} without quotes is a boolean: write "{written}"'
    if isinstance(node.value, int | float):
        return f'{what} must be text, but {written} is a number: write "{written}"'
    if isinstance(node.value, list):
        return f"{what} must be text, not a list"
    (name, *others) = [*node.value] or [""]
    is_placeholder = name and not others and node.value[name].value is None
    cure = f': put the placeholder in quotes, "{{{name}}}"' if is_placeholder else ""
    return f"{what} must be text, not a mapping{cure}"
