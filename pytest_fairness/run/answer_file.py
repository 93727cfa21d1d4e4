"""Probe made from a file of answers, so that the file can be measured without a probe file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness import kinds, probes
from pytest_fairness.answers.recorded import fields
from pytest_fairness.audits import registry
from pytest_fairness.errors import FairnessError
from pytest_fairness.probes import Probe, checks, table
from pytest_fairness.probes.base import TABLE_SUFFIXES
from pytest_fairness.probes.diagnostics import nearest
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.probes.file_names import name_problem
from pytest_fairness.targets.one_line import one_line

KIND = "generation"
MOST_GROUPS = 20
"""Maximum number of different values in a column of groups; a column of texts or numbers has more."""
SHOWN_VALUES = 10
LONGEST_VALUE = 40
"""Maximum number of characters of a value in a message."""


@dataclass(frozen=True)
class FileProbe:
    """Probe made from a file of answers.

    Attributes:
        probe: the probe.
        text: the probe as the text of a probe file.
        columns: columns of the file of answers.
    """

    probe: Probe
    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AnswerFile:
    """A file of answers, with the meaning of its columns.

    Attributes:
        path: CSV or JSON Lines file with one answer per row.
        group: name of the column with the groups.
        unmarked: group with which the other groups are compared.
        marked: groups to compare with the unmarked group; if empty, all other groups are compared.
        text: name of the column with the answers.
        strata: columns such as the prompt; only answers with the same values in these columns are compared.
        audits: names of the audits; if empty, all audits that need no settings are used.
    """

    path: Path
    group: str
    unmarked: str
    marked: Sequence[str] = ()
    text: str
    strata: Sequence[str] = ()
    audits: Sequence[str] = ()

    def probe(self, written: Path | None = None) -> FileProbe:
        """Return the probe made from the file of answers.

        Args:
            written: path at which the probe's text will be saved; `None` if it will not be saved.

        Raises:
            FairnessError: the file cannot be read, lacks one of the columns or groups, or is outside of the folder in
                which the probe's text will be saved.
        """
        path = (written or self.path.resolve().with_suffix(".yaml")).absolute()
        try:
            file = self.path.resolve().relative_to(path.parent.resolve()).as_posix()
        except ValueError:
            raise FairnessError(
                f"{written}: a probe file must be in the folder of its answers, or in a folder above it. Write it to "
                f"{display_path(self.path.absolute().parent / path.name, Path.cwd())}."
            ) from None
        name = display_path(self.path.absolute(), Path.cwd())
        if self.path.suffix.casefold() not in TABLE_SUFFIXES:
            raise FairnessError(f"{name}: the file must be a table ({', '.join(TABLE_SUFFIXES)}). Export it as CSV.")
        content = table.read(self.path, name)
        for option, column in [("group", self.group), ("text", self.text), *(("strata", each) for each in self.strata)]:
            if column not in content.columns:
                raise FairnessError(
                    f"{name}:1: no column {column!r}{_hint(column, content.columns)}. The columns are "
                    f"{', '.join(map(repr, content.columns))}: name one of them with --{option}."
                )
        values: Counter[str] = Counter()
        spellings: dict[str, str] = {}
        for row in content.rows:
            written_group = row.fields.get(self.group)
            group = "" if written_group is None else fields.text(written_group).strip()
            # Readers of answers ignore letter case and blanks in names of groups.
            values[spellings.setdefault(checks.folded(group), group)] += 1
        values.pop("", None)  # the reader of the answers counts these rows
        marked = self._groups(name, values)
        if self.text == self.group:
            raise FairnessError(
                f"{name}: the column {self.text!r} holds the groups, not the answers. Give the column of the answers "
                "with --text."
            )
        text = self._probe_text(file, marked)
        probe = probes.parse(text.encode(), path, kinds.schemas(), root=Path.cwd())
        return FileProbe(probe, text, content.columns)

    def _probe_text(self, file: str, marked: Sequence[str]) -> str:
        """Return the text of the probe file; `file` is the path of the answers, relative to the probe file's folder."""
        axis = re.sub(r"\W", "_", self.group, flags=re.ASCII)
        if axis in ("", "text", "trial", "prompt") or axis[0].isdigit():
            axis = f"_{axis}"
        columns = {axis: self.group, "text": self.text}
        known = [audit for audit in registry.AUDITS[KIND] if audit not in registry.NEED_SETTINGS]
        return "\n".join(
            [
                f"kind: {KIND}",
                f"name: {_quoted(self._name())}",
                "axes:",
                f"  {_quoted(axis)}: {{unmarked: {_quoted(self.unmarked)}, marked: {_quoted(list(marked))}}}",
                "responses:",
                f"  file: {_quoted(file)}",
                f"  columns: {_quoted(columns)}",
                *([f"  strata: {_quoted(list(self.strata))}"] if self.strata else []),
                *(['  ignore: ["*"]'] if self.marked else []),
                "audits:",
                *(f"  {audit}: {{}}" for audit in self.audits or known),
                "",
            ]
        )

    def _name(self) -> str:
        """Return the probe's name: the file's name, with `_` for characters that a probe's name cannot have."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.path.stem).lstrip("._-")[:100].rstrip(".") or "answers"
        return f"answers-{name}" if name_problem(name) else name

    def _groups(self, name: str, values: Counter[str]) -> list[str]:
        """Return the groups in `marked` or, by default, all groups of the column except `unmarked`.

        Raises:
            FairnessError: the column has no groups, a single group or too many values, or lacks a group that the user
                named.
        """
        shown = ", ".join(
            f"{one_line(value, LONGEST_VALUE)!r} ({count})" for value, count in values.most_common(SHOWN_VALUES)
        )
        shown += ", …" if len(values) > SHOWN_VALUES else ""
        if not values:
            raise FairnessError(f"{name}: every cell of the column {self.group!r} is empty. Give another --group.")
        if len(values) > MOST_GROUPS and not self.marked:
            raise FairnessError(
                f"{name}: the column {self.group!r} has {len(values):,} different values ({shown}), too many for a "
                "column of groups. Give another --group, or choose values with --marked."
            )
        for option, group in [("unmarked", self.unmarked), *(("marked", each) for each in self.marked)]:
            if group not in values:
                raise FairnessError(
                    f"{name}: no row has {group!r} in the column {self.group!r}{_hint(group, values)}. The groups are "
                    f"{shown}: name one of them with --{option}."
                )
        marked = [value for value, _ in values.most_common() if value != self.unmarked]
        if not marked:
            raise FairnessError(
                f"{name}: every row has {self.unmarked!r} in the column {self.group!r}, so there is no other group to "
                "compare. Add answers for another group, or give another --group."
            )
        return list(self.marked) or marked


def _hint(name: str, choices: Sequence[str] | Counter[str]) -> str:
    close = nearest(name, choices)
    return "" if close is None else f" (did you mean {close!r}?)"


def _quoted(value: object) -> str:
    """Return a value as JSON, which is also valid YAML."""
    return json.dumps(value, ensure_ascii=False)
