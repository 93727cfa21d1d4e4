"""Measurement of a file of answers without a probe file, and calibration of limits on labelled outputs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from pytest_fairness import kinds, probes
from pytest_fairness.audits import registry
from pytest_fairness.audits.base import AnyAudit
from pytest_fairness.errors import FairnessError, NotMeasurable, one_line
from pytest_fairness.probes import field_types, table
from pytest_fairness.probes.base import TABLE_SUFFIXES, Probe, ResponsesSettings
from pytest_fairness.probes.diagnostics import nearest
from pytest_fairness.probes.field_types import display_path, name_problem
from pytest_fairness.probes.recorded_rows import text_field
from pytest_fairness.records import Answer, Json
from pytest_fairness.run.engines import scored
from pytest_fairness.run.items import ProbeItem, items_of
from pytest_fairness.stats import gaps
from pytest_fairness.stats.gaps import Errors

# Probe made from a file of answers, so that the file can be measured without a probe file.

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
            group = "" if written_group is None else text_field(written_group).strip()
            # Readers of answers ignore letter case and blanks in names of groups.
            values[spellings.setdefault(field_types.folded(group), group)] += 1
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
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.path.stem).lstrip("._-")[:100].rstrip(".") or "answers"
        return f"answers-{name}" if name_problem(name) else name

    def _groups(self, name: str, values: Counter[str]) -> list[str]:
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
    return json.dumps(value, ensure_ascii=False)


# Calibration of limits: error rates of an audit's possible limits, measured on labelled outputs.

LABEL, SET = "label", "set"
ACCEPTABLE, PROBLEMATIC = LABELS = ("acceptable", "problematic")


@dataclass(frozen=True)
class Calibration:
    """Error rates of one audit's limits on labelled outputs.

    Attributes:
        audit: name of the audit.
        cases: number of measured sets, by label; a set is one output, or all outputs with the same value in
            the column `set`.
        unmeasured: number of sets that could not be measured.
        own_limit: error rates of the probe's own limit; `None` if the probe sets no limit, or if one of the two labels
            has no measured set.
        curve: error rates of possible limits; each limit divides the sets differently into passed and failed.
        best: error rates of the recommended limit; `None` if no limit is good (see `Errors.good`), or if one of the two
            labels has no measured set.
    """

    audit: str
    cases: Mapping[str, int]
    unmeasured: int
    own_limit: Errors | None
    curve: Sequence[Errors]
    best: Errors | None

    def to_json(self) -> dict[str, Json]:
        return {
            "audit": self.audit,
            "cases": dict(self.cases),
            "unmeasured": self.unmeasured,
            "present": self.own_limit and asdict(self.own_limit),
            "best": self.best and asdict(self.best),
            "curve": [asdict(each) for each in self.curve],
        }


def calibrate(probe: Probe, labelled: Path) -> list[Calibration]:
    _check_labels(labelled)
    answers: dict[str, list[Answer]] = {}
    for answer in _answers(probe, labelled):
        answers.setdefault(_set_of(answer), []).append(answer)
    problematic = {}
    for name, group in answers.items():
        first, *others = {answer.labels[LABEL].casefold() for answer in group}
        if others:
            raise FairnessError(
                f"{labelled.name}: the set {group[0].labels[SET]!r} has both labels. Give all outputs of a set "
                "the same label."
            )
        problematic[name] = first == PROBLEMATIC
    return [_calibrate_audit(probe, name, answers, problematic) for name in probe.audits]


def _check_labels(path: Path) -> None:
    content = table.read(path, path.name, "labelled outputs")
    if LABEL not in content.columns:
        raise FairnessError(
            f"{path.name}:1: no column 'label' (the columns are {', '.join(map(repr, content.columns))}). Add the "
            f"column, with the value {' or '.join(LABELS)} for each output."
        )
    found = set()
    for row in content.rows:
        written = str(row.fields.get(LABEL, "")).strip()
        if written.casefold() not in LABELS:
            raise FairnessError(f"{path.name}:{row.line}: the label must be {' or '.join(LABELS)}, not {written!r}.")
        found.add(written.casefold())
    if len(found) < len(LABELS):
        raise FairnessError(
            f"{path.name}: every output has the label {found.pop()!r}. Add outputs with the other label, because error "
            "rates need outputs with each label."
        )


def _answers(probe: Probe, path: Path) -> list[Answer]:
    """Return the labelled outputs as answers.

    The file is read like a probe's `responses:` file; the columns `label` and `set` become strata.
    """
    columns = table.read(path, path.name).columns
    strata = tuple(name for name in (LABEL, SET) if name in columns)
    given = ResponsesSettings.model_construct(
        file=path.resolve(), columns=dict(probe.responses.columns) if probe.responses else {}, strata=strata
    )
    return kinds.recorded_answers(probe.model_copy(update={"responses": given}))


def _set_of(answer: Answer) -> str:
    if SET in answer.labels:
        return f"{SET} {answer.labels[SET]}"
    return f"{sorted(answer.labels.items())} {answer.trial}"


def _calibrate_audit(
    probe: Probe, name: str, sets: Mapping[str, Sequence[Answer]], problematic: Mapping[str, bool]
) -> Calibration:
    items = [item for item in items_of(probe) if item.audit.info.name == name]
    if not items:
        return Calibration(name, dict.fromkeys(LABELS, 0), len(sets), None, (), None)
    audit, limit = items[0].audit, items[0].settings.limit
    scores: list[float] = []
    labels: list[bool] = []
    for key, answers in sets.items():
        found = [_measured_value(item, list(item.select_own(answers))) for item in items]
        measured = [audit.info.loss(value) for value in found if value is not None]
        if measured:
            scores.append(max(measured))
            labels.append(problematic[key])
    bad = np.array(labels, dtype=np.bool_)
    counts = {ACCEPTABLE: int((~bad).sum()), PROBLEMATIC: int(bad.sum())}
    if not all(counts.values()):
        return Calibration(name, counts, len(sets) - len(scores), None, (), None)
    values = np.array(scores)
    curve = gaps.error_curve(values, bad)
    current = None if limit is None else gaps.limit_errors(values, bad, audit.info.loss(limit))
    best = gaps.best_limit([*([] if current is None else [current]), *curve])
    return Calibration(
        name,
        counts,
        len(sets) - len(scores),
        current and _with_limit_as_value(audit, current),
        sorted((_with_limit_as_value(audit, each) for each in curve), key=lambda each: each.limit),
        best and _with_limit_as_value(audit, best),
    )


def _measured_value(item: ProbeItem, answers: Sequence[Answer]) -> float | None:
    if not answers:
        return None
    item.models.require()
    try:
        return item.audit.score(item, scored(item, answers, None))
    except NotMeasurable:
        return None


def _with_limit_as_value(audit: AnyAudit, errors: Errors) -> Errors:
    limits = {"higher": -errors.limit, "fifty": 50 + errors.limit}
    return replace(errors, limit=limits.get(audit.info.better, errors.limit))
