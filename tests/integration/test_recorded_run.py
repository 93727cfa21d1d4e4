"""Numbers and verdicts of recorded and pretended answers, equal to those that an earlier version of the code gave.

`python -m tests.integration.test_recorded_run` writes `tests/support/recorded_run.json` anew, for a change of the
arithmetic that is wanted; it prints what differs.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks import calibration, nulls
from benchmarks.calibration import entry_of
from pytest_fairness import kinds, probes
from pytest_fairness.answers.reading import answer
from pytest_fairness.baselines.entries import read_answers
from pytest_fairness.baselines.files import paths
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Prompt, Response
from pytest_fairness.run import BaselineComparison, ProbeItem, items_of
from pytest_fairness.run.results import verdict_on

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "support" / "recorded_run.json"
STARTERS = ("adult_income", "hobbies", "letters", "stereotypes", "winobias")
"""Probes of this repository whose baselines hold answers of the embedded model."""
LEFT_OUT = ("flip_rate",)
"""Audits that need answers which the recorded ones do not hold."""
SLOW = ("one word", "interaction", "shared seed", "few answers")
"""Designs that take seconds and whose audits others hold as well."""

Numbers = dict[str, Any]


@cache
def simulated() -> dict[str, tuple[str, str]]:
    """Return the smallest design of each name among the pretended models, by its name."""
    known = {name: (name, size) for name, size in reversed(calibration.scenarios())}
    return {name: key for name, key in known.items() if name not in SLOW}


def numbers(part: ProbeItem, current: Sequence[Answer], baseline: Sequence[Answer]) -> Numbers:
    """Return the measured numbers of an item, those of its change since the baseline, and its verdict."""
    try:
        found = nulls.measured(part, current)
        change = part.audit.compare(part, current, baseline)
    except NotMeasurable as error:
        return {"verdict": "not-measurable", "reason": str(error)}
    now = found.measurement
    verdict = verdict_on(found, BaselineComparison(entry_of(now), (), change))
    return {
        "verdict": verdict.name.value,
        "significant": verdict.significant,
        "value": [now.value, now.interval, now.standard_error, now.p_value, now.degrees_of_freedom],
        "answers": [dict(now.n), dict(now.missing)],
        "change": [change.value, change.interval, change.standard_error, change.p_value, change.degrees_of_freedom],
        "reversed": change.reversal and [change.reversal.value, change.reversal.p_value],
        "bound": [verdict.upper_bound, verdict.minimum_detectable],
    }


def of_design(name: str) -> Iterator[tuple[str, Numbers]]:
    """Yield the numbers of each item of a pretended model that became worse since its baseline."""
    scenario = calibration.scenarios()[simulated()[name]]
    baseline, current = scenario.simulate(2, 0.0), scenario.simulate(3, scenario.changes[-1])
    for item in items_of(scenario.probe):
        part = item.analyses[-1]
        runs = ([each for each in run if part.uses(each.labels)] for run in (current, baseline))
        now, before = (scenario.prepared(part, run) for run in runs)
        yield part.id, numbers(part, now, before)


def of_starter(name: str) -> Iterator[tuple[str, Numbers]]:
    """Yield the numbers of each item of a starter probe: all recorded trials against every second one."""
    probe = probes.load(ROOT / "probes" / f"{name}.yaml", kinds.schemas())
    texts = {
        (tuple(sorted(row.labels.items())), row.trial): row.text
        for rows in (read_answers(paths(ROOT / "baselines", name)[1]) or {}).values()
        for row in rows
    }

    def text_of(prompt: Prompt) -> str | None:
        return texts.get((tuple(sorted(prompt.labels.items())), prompt.trial))

    answers = [
        answer(prompt, Response(text), probe.language)
        for prompt in probe.prompts()
        if (text := text_of(prompt)) is not None
    ]
    for item in items_of(probe):
        part = item.analyses[-1]
        if part.audit.info.name in LEFT_OUT or part.audit.preparation(part) is not None:
            continue
        own = [each for each in answers if part.uses(each.labels)]
        yield part.id, numbers(part, own, [each for each in own if each.trial % 2 == 0])


def plain(found: Iterator[tuple[str, Numbers]]) -> dict[str, Numbers]:
    """Return the numbers as they are after a way through JSON; infinite numbers become texts."""
    return json.loads(json.dumps(dict(found), default=float))  # type: ignore[no-any-return]


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yield a line for each number or text that differs by more than the last digits, which depend on the processor."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for name in old:
            yield from differences(old[name], new[name], f"{place}/{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{place}/{number}")
    elif isinstance(old, float) and isinstance(new, float):
        if not (math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(old) and math.isnan(new))):
            yield f"{place}: {old} became {new}"
    elif old != new:
        yield f"{place}: {old} became {new}"


@cache
def recorded() -> dict[str, dict[str, Numbers]]:
    """Return the recorded numbers by design or probe, and by item."""
    return json.loads(RECORDED.read_text("utf-8"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", sorted(simulated()))
def test_numbers_of_a_pretended_model_are_those_of_the_record(name: str) -> None:
    assert [*differences(recorded()[name], plain(of_design(name)))] == []


@pytest.mark.parametrize("name", STARTERS)
def test_numbers_of_the_starter_probes_are_those_of_the_record(name: str) -> None:
    assert [*differences(recorded()[name], plain(of_starter(name)))] == []


def test_the_record_holds_every_audit() -> None:
    held = {item.partition("[")[0] for items in recorded().values() for item in items}
    assert {each.audit.info.name for key in simulated().values() for each in _items(key)} <= held


def _items(key: tuple[str, str]) -> list[ProbeItem]:
    return items_of(calibration.scenarios()[key].probe)


def main() -> None:
    """Write the record anew and print what differs."""
    found = {name: plain(of_design(name)) for name in sorted(simulated())}
    found |= {name: plain(of_starter(name)) for name in STARTERS}
    if RECORDED.exists():
        sys.stdout.write("".join(f"{line}\n" for line in differences(recorded(), found)) or "nothing differs\n")
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
