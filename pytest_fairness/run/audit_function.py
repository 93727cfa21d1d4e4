"""Function `audit()`: measurement of a probe file without pytest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from pytest_fairness.errors import FairnessError
from pytest_fairness.options import DEFAULT_TARGET, RunSettings
from pytest_fairness.records import Measurement
from pytest_fairness.run.measuring import variants
from pytest_fairness.run.probe_items import ProbeItem, items_of
from pytest_fairness.run.run import Run
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.python_callable import Application


@dataclass(frozen=True)
class Audited:
    """Result of `audit` for one item: a measurement, or the error that prevented the measurement.

    Attributes:
        id: id of the item, such as `svm[race=Black]`.
        labels: subject of the item, such as `{"race": "Black"}`.
        measurement: the measurement; `None` if there is an error.
        error: the error; `None` if there is a measurement.
    """

    id: str
    labels: Mapping[str, str]
    measurement: Measurement | None
    error: FairnessError | None = None

    @property
    def value(self) -> float:
        """Return the measured value, in the audit's unit; without a measurement, raise the error."""
        if self.error is not None:
            raise self.error
        return cast("Measurement", self.measurement).value


def audit(probe: str | Path, target: str | Application | Target = DEFAULT_TARGET, **settings: Any) -> list[Audited]:
    """Measure every audit of a probe file, without pytest.

    Args:
        probe: the probe file.
        target: system under test: a name such as `openai:MODEL`, or a callable that takes a prompt and returns an
            answer.
        **settings: settings of `RunSettings`, such as `base_url`, `trials`, `concurrency`, `fresh`, `replay` or
            `store`.

    Returns:
        One result for each item, in the probe's order. An item that cannot be measured holds its error.

    Raises:
        ProbeError: the probe file has errors.
        TargetError: there is no target or judge model of this name.
        TypeError: there is no such setting.
    """
    path = Path(probe).absolute()
    root = Path.cwd()
    known = {field.name for field in fields(RunSettings)} - {"target", "targets"}
    if unknown := sorted(settings.keys() - known):
        raise TypeError(f"audit() has no setting {', '.join(unknown)}. The settings are {', '.join(sorted(known))}.")
    named = target if isinstance(target, str) else DEFAULT_TARGET
    chosen = RunSettings(**{"root": root, "target": named, **settings})
    with Run(replace(chosen, store=root / chosen.store)) as run:
        loaded = run.load(path)
        run.targets.require_judge(loaded)
        items = items_of(loaded, run.settings.trials)
        asked = None
        if loaded.responses is None:
            asked = run.targets.from_value(target, "target")
            run.plan(asked, [item for item in items if item.measurable])
        return [_audited(run, item, asked) for item in items]


def _audited(run: Run, item: ProbeItem, target: Target | None) -> Audited:
    try:
        measurement = variants.with_variants(run.measurer, run.measurer.measure(item, target), target).measurement
    except FairnessError as error:
        return Audited(item.id, item.labels, None, error)
    return Audited(item.id, item.labels, measurement)
