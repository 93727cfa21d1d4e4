"""Calibration of limits: error rates of an audit's possible limits, measured on labelled outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from pytest_fairness import kinds
from pytest_fairness.audits.base import AnyAudit
from pytest_fairness.errors import FairnessError, NotMeasurable
from pytest_fairness.probes import table
from pytest_fairness.probes.base import Probe, ResponsesSettings
from pytest_fairness.records import Answer, Json
from pytest_fairness.run.answering.scoring import scored
from pytest_fairness.run.items.probe_items import ProbeItem, items_of
from pytest_fairness.stats.intervals import limit_errors
from pytest_fairness.stats.intervals.limit_errors import Errors

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
        """Return the calibration as plain JSON."""
        return {
            "audit": self.audit,
            "cases": dict(self.cases),
            "unmeasured": self.unmeasured,
            "present": self.own_limit and asdict(self.own_limit),
            "best": self.best and asdict(self.best),
            "curve": [asdict(each) for each in self.curve],
        }


def calibrate(probe: Probe, labelled: Path) -> list[Calibration]:
    """Return the calibration of each audit of a probe, measured on labelled outputs.

    Args:
        labelled: CSV or JSON Lines file with the columns of the probe's kind, the column `label` (acceptable or
            problematic) and, if a label applies to several outputs together, the column `set`.

    Raises:
        FairnessError: the file cannot be read, a label is missing or unknown, all labels are the same, or a set has
            both labels.
    """
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
    """Return the name of the set to which an output belongs; without a column `set`, each output is a separate set."""
    if SET in answer.labels:
        return f"{SET} {answer.labels[SET]}"
    return f"{sorted(answer.labels.items())} {answer.trial}"


def _calibrate_audit(
    probe: Probe, name: str, sets: Mapping[str, Sequence[Answer]], problematic: Mapping[str, bool]
) -> Calibration:
    """Return the calibration of one audit; the value of a set is the value of its worst item.

    Args:
        probe: probe of the audit.
        name: name of the audit.
        sets: labelled outputs by set.
        problematic: whether each set is labelled `problematic`, by the name of the set.
    """
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
    curve = limit_errors.curve(values, bad)
    current = None if limit is None else limit_errors.errors(values, bad, audit.info.loss(limit))
    best = limit_errors.best([*([] if current is None else [current]), *curve])
    return Calibration(
        name,
        counts,
        len(sets) - len(scores),
        current and _with_limit_as_value(audit, current),
        sorted((_with_limit_as_value(audit, each) for each in curve), key=lambda each: each.limit),
        best and _with_limit_as_value(audit, best),
    )


def _measured_value(item: ProbeItem, answers: Sequence[Answer]) -> float | None:
    """Return the value of an item measured from these answers; `None` if the answers cannot be measured."""
    if not answers:
        return None
    item.models.require()
    try:
        return item.audit.score(item, scored(item, answers, None))
    except NotMeasurable:
        return None


def _with_limit_as_value(audit: AnyAudit, errors: Errors) -> Errors:
    """Return the error rates with `limit` converted from a loss to a value of the audit, as in probe files."""
    limits = {"higher": -errors.limit, "fifty": 50 + errors.limit}
    return replace(errors, limit=limits.get(audit.info.better, errors.limit))
