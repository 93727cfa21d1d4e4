"""How far a value moves although nothing changed: other words for the same question, and another run of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.baselines.entries import RunToRun
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Json, Measurement
from pytest_fairness.run.probe_items import ProbeItem


def paraphrases(item: ProbeItem, answers: Sequence[Answer]) -> dict[str, Json] | None:
    """How far the wording alone moves an item's value; `None` where fewer than two prompts can be measured alone.

    Returns:
        `values` by number of the prompt, their standard deviation `sd`, the `noise` that so few answers to each have
        anyway (root mean square of their standard errors, or `None`), and the `floor`: what of `sd` the noise does
        not explain. A tolerance below it mistakes a rewording for a change of the model.
    """
    names = sorted({answer.labels.get("prompt", "") for answer in answers} - {""})
    found = {
        name: _alone(item, [answer for answer in answers if answer.labels.get("prompt") == name]) for name in names
    }
    measured = {name: measurement for name, measurement in found.items() if measurement is not None}
    if len(measured) < 2:
        return None
    sd = float(np.std([measurement.value for measurement in measured.values()], ddof=1))
    errors = [each.standard_error for each in measured.values() if each.standard_error is not None]
    noise = float(np.sqrt(np.mean(np.square(errors)))) if errors else None
    return {
        "values": {name: measurement.value for name, measurement in measured.items()},
        "sd": sd,
        "noise": noise,
        "floor": float(np.sqrt(max(0.0, sd**2 - (noise or 0.0) ** 2))),
    }


def run_to_run(item: ProbeItem, answers: Sequence[Answer]) -> RunToRun | None:
    """Return how far an item's value moves from one run of its probe to the next.

    The trials are dealt to runs of the size that the probe asks for; `None` if there are fewer than two such runs.
    """
    size = item.probe.draws()
    runs = item.draws // size
    if runs < 2 or not item.asks:
        return None
    found = [_alone(item, [each for each in answers if each.trial // size == run]) for run in range(runs)]
    values = [measurement.value for measurement in found if measurement is not None]
    return RunToRun(len(values), float(np.std(values, ddof=1))) if len(values) > 1 else None


def _alone(item: ProbeItem, answers: Sequence[Answer]) -> Measurement | None:
    try:
        return item.audit.measure(item.probe, item, answers)
    except NotMeasurable:
        return None
