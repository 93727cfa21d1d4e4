"""Noise of an item's value: its variation between paraphrases of a prompt, and between runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.baselines.entries import RunToRun
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.keys.interim_stages import max_trials
from pytest_fairness.records import Answer, Json, Measurement
from pytest_fairness.run.items.probe_items import ProbeItem


def paraphrases(item: ProbeItem, answers: Sequence[Answer]) -> dict[str, Json] | None:
    """Return the variation of an item's value between the paraphrases of its prompt.

    Returns:
        `None` if fewer than two prompts can be measured separately, or if the probe reads its prompts from a file;
        otherwise a dictionary with these keys:

        - `values`: value by number of the prompt.
        - `sd`: standard deviation of the values.
        - `noise`: sampling error of the values (root mean square of their standard errors); `None` if unknown.
        - `floor`: standard deviation between wordings, without the sampling error: sqrt(sd² - noise²). If the tolerance
          is smaller than the floor, another wording can look like a change of the model.
    """
    if getattr(item.probe, "prompts_file", None) is not None:
        return None
    names = sorted({answer.labels.get("prompt", "") for answer in answers} - {""})
    found = {
        name: _measured(item, [answer for answer in answers if answer.labels.get("prompt") == name]) for name in names
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
    """Return the variation of an item's value between runs of its probe, estimated from the trials of one run.

    The trials are divided into parts; each part has the probe's own number of trials and stands for one run. The result
    is `None` if fewer than two parts can be measured, or if the answers are in a file.
    """
    size = max_trials(item.probe.trials)
    runs = item.trial_count // size
    if runs < 2 or not item.asks:
        return None
    found = [_measured(item, [each for each in answers if each.trial // size == run]) for run in range(runs)]
    values = [measurement.value for measurement in found if measurement is not None]
    return RunToRun(len(values), float(np.std(values, ddof=1))) if len(values) > 1 else None


def _measured(item: ProbeItem, answers: Sequence[Answer]) -> Measurement | None:
    """Return the measurement of the item from these answers; `None` if there are too few usable answers."""
    try:
        return item.audit.measure(item, answers)
    except NotMeasurable:
        return None
