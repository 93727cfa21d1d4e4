"""Limits that are chosen: what the audits of a probe make of outputs that people have labelled."""

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
from pytest_fairness.run.probe_items import ProbeItem, items_of
from pytest_fairness.stats.intervals import limit_errors
from pytest_fairness.stats.intervals.limit_errors import Errors

LABEL, SET = "label", "set"
ACCEPTABLE, PROBLEMATIC = LABELS = ("acceptable", "problematic")


@dataclass(frozen=True)
class Calibration:
    """What labelled outputs say of one audit's limit.

    Attributes:
        audit: its name.
        cases: labelled sets of outputs by label, those that could be measured.
        unmeasured: how many more could not be.
        present: the errors of the limit that the probe sets; `None` where it sets none, or nothing could be measured.
        curve: the errors of every limit that makes a difference.
        best: of these the one that keeps both errors low; `None` if none does.
    """

    audit: str
    cases: Mapping[str, int]
    unmeasured: int
    present: Errors | None
    curve: Sequence[Errors]
    best: Errors | None

    def to_json(self) -> dict[str, Json]:
        """Plain JSON."""
        return {
            "audit": self.audit,
            "cases": dict(self.cases),
            "unmeasured": self.unmeasured,
            "present": self.present and asdict(self.present),
            "best": self.best and asdict(self.best),
            "curve": [asdict(each) for each in self.curve],
        }


def calibrate(probe: Probe, labelled: Path) -> list[Calibration]:
    """Score labelled outputs by every audit of a probe, and see what each limit gets wrong.

    Args:
        probe: the probe whose audits and cases hold.
        labelled: CSV or JSON Lines with the columns that the probe's kind reads, `label` (acceptable or problematic)
            and, where several outputs are labelled together, `set`.

    Raises:
        FairnessError: the file cannot be read, a label is missing or unknown, or there are labels of one kind only.
    """
    _check_labels(labelled)
    answers: dict[str, list[Answer]] = {}
    for answer in _answers(probe, labelled):
        answers.setdefault(_set_of(answer), []).append(answer)
    named = {}
    for name, group in answers.items():
        first, *others = {answer.labels[LABEL].casefold() for answer in group}
        if others:
            raise FairnessError(f"{labelled.name}: the set {group[0].labels[SET]!r} has both labels; it can have one.")
        named[name] = first == PROBLEMATIC
    return [_of_audit(probe, name, answers, named) for name in probe.audits]


def _check_labels(path: Path) -> None:
    content = table.read(path, path.name, "labelled outputs")
    if LABEL not in content.columns:
        raise FairnessError(
            f"{path.name}:1: no column 'label' (the columns are {', '.join(map(repr, content.columns))}): label each "
            f"output {' or '.join(LABELS)}."
        )
    found = set()
    for row in content.rows:
        written = str(row.fields.get(LABEL, "")).strip()
        if written.casefold() not in LABELS:
            raise FairnessError(f"{path.name}:{row.line}: the label must be {' or '.join(LABELS)}, not {written!r}.")
        found.add(written.casefold())
    if len(found) < len(LABELS):
        raise FairnessError(f"{path.name}: every output is {found.pop()}: limits take outputs of both labels.")


def _answers(probe: Probe, path: Path) -> list[Answer]:
    """The outputs, read as those of a probe that brings its answers along; labels and sets are strata."""
    columns = table.read(path, path.name).columns
    strata = tuple(name for name in (LABEL, SET) if name in columns)
    given = ResponsesSettings.model_construct(
        file=path.resolve(), columns=dict(probe.responses.columns) if probe.responses else {}, strata=strata
    )
    return kinds.rows(probe.model_copy(update={"responses": given}))


def _set_of(answer: Answer) -> str:
    """Outputs of one set are scored together; without sets each alone."""
    if SET in answer.labels:
        return f"{SET} {answer.labels[SET]}"
    return f"{sorted(answer.labels.items())} {answer.trial}"


def _of_audit(probe: Probe, name: str, sets: Mapping[str, Sequence[Answer]], named: Mapping[str, bool]) -> Calibration:
    items = [item for item in items_of(probe) if item.audit.info.name == name]
    if not items:
        return Calibration(name, dict.fromkeys(LABELS, 0), len(sets), None, (), None)
    audit, limit = items[0].audit, items[0].settings.limit
    scores: list[float] = []
    problematic: list[bool] = []
    for key, answers in sets.items():
        found = [_score(item, [answer for answer in answers if item.uses(answer.labels)]) for item in items]
        measured = [audit.info.loss(value) for value in found if value is not None]
        if measured:
            scores.append(max(measured))
            problematic.append(named[key])
    bad = np.array(problematic, dtype=np.bool_)
    counts = {ACCEPTABLE: int((~bad).sum()), PROBLEMATIC: int(bad.sum())}
    if not all(counts.values()):
        return Calibration(name, counts, len(sets) - len(scores), None, (), None)
    values = np.array(scores)
    curve = limit_errors.curve(values, bad)
    present = None if limit is None else limit_errors.errors(values, bad, audit.info.loss(limit))
    best = limit_errors.best([*([] if present is None else [present]), *curve])
    turned = [_turned(audit, each) for each in curve]
    return Calibration(
        name,
        counts,
        len(sets) - len(scores),
        present and _turned(audit, present),
        sorted(turned, key=lambda each: each.limit),
        best and _turned(audit, best),
    )


def _score(item: ProbeItem, answers: Sequence[Answer]) -> float | None:
    if not answers:
        return None
    item.require_models()
    try:
        return item.audit.score(item.probe, item, scored(item, answers, None))
    except NotMeasurable:
        return None


def _turned(audit: AnyAudit, errors: Errors) -> Errors:
    """The errors of a limit on loss as those of the limit that a probe file names."""
    limits = {"higher": -errors.limit, "fifty": 50 + errors.limit}
    return replace(errors, limit=limits.get(audit.info.better, errors.limit))
