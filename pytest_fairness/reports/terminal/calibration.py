"""Terminal output of `calibrate`: error rates of limits on labelled outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.text_layout import table
from pytest_fairness.stats.intervals.limit_errors import FALSE_NEGATIVES, FALSE_POSITIVES

SHOWN_LIMITS = 12
WIDTH = 100
"""Maximum width of a line of the table, in columns."""

CalibrationJson = Mapping[str, Json]


def text(calibrations: Sequence[CalibrationJson]) -> str:
    """Return a section for each audit: error rates of several limits, including the current and the best limit.

    Args:
        calibrations: JSON of `run.calibrate.Calibration`.
    """
    return "\n\n".join("\n".join(_section(calibration)) for calibration in calibrations)


def _section(calibration: CalibrationJson) -> list[str]:
    cases = calibration["cases"]
    unmeasured = f"; {calibration['unmeasured']} more could not be measured" if calibration["unmeasured"] else ""
    counts = f"{cases['acceptable']} acceptable and {cases['problematic']} problematic outputs"
    lines = [f"{printable(calibration['audit'])}: {counts}{unmeasured}"]
    if not calibration["curve"]:
        advice = "Add outputs until outputs of both labels are measured, and not all values are equal."
        return [*lines, f"  No limit can be chosen. {advice}"]
    current, best = calibration["present"], calibration["best"]
    points = {
        number(point["limit"]): point for point in (*_sample(calibration["curve"]), current, best) if point is not None
    }
    rows = [("limit", "false positives", "false negatives", "")]
    for point in sorted(points.values(), key=lambda point: float(point["limit"])):
        marks = [name for name, marked in (("current", current), ("best", best)) if point == marked]
        rows.append((number(point["limit"]), _rate(point, "false_positive"), _rate(point, "missed"), ", ".join(marks)))
    return [*lines, *(f"  {line}" for line in table(rows, WIDTH)), *_advice(best)]


def _advice(best: CalibrationJson | None) -> list[str]:
    goal = f"under {FALSE_POSITIVES:.0%} false positives and under {FALSE_NEGATIVES:.0%} false negatives"
    if best is None:
        return [f"  No limit gives {goal} on these outputs."]
    lines = [f"  The limit {number(best['limit'])} gives {goal}."]
    highest = best["false_positive_interval"][1], best["missed_interval"][1]
    if highest[0] > FALSE_POSITIVES or highest[1] > FALSE_NEGATIVES:
        lines.append(
            f"  The sample is small: the 95 % confidence intervals reach {highest[0]:.0%} false positives and "
            f"{highest[1]:.0%} false negatives."
        )
    return lines


def _sample(curve: Sequence[CalibrationJson]) -> list[CalibrationJson]:
    """Return at most `SHOWN_LIMITS` of the limits in `curve`, evenly spaced in their order."""
    if len(curve) <= SHOWN_LIMITS:
        return list(curve)
    places = {round(place * (len(curve) - 1) / (SHOWN_LIMITS - 1)) for place in range(SHOWN_LIMITS)}
    return [curve[place] for place in sorted(places)]


def _rate(point: CalibrationJson, name: str) -> str:
    low, high = point[f"{name}_interval"]
    return f"{point[name]:.0%} [{low:.0%}, {high:.0%}]"
