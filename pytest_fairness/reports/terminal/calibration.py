"""What labelled outputs say of limits, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.terminal.layout import pad
from pytest_fairness.stats.thresholds import FALSE_POSITIVES, MISSES

SHOWN_LIMITS = 12

Found = Mapping[str, Json]


def text(calibrations: Sequence[Found]) -> str:
    """One section an audit: the errors of limits, those of the present one, and the one that is better.

    Args:
        calibrations: as `Calibration.to_json` gives them.
    """
    return "\n\n".join("\n".join(_section(found)) for found in calibrations)


def _section(found: Found) -> list[str]:
    cases = found["cases"]
    lost = f", {found['unmeasured']} more hold nothing to measure" if found["unmeasured"] else ""
    counts = f"{cases['acceptable']} acceptable and {cases['problematic']} problematic outputs"
    lines = [f"{printable(found['audit'])}: {counts}{lost}"]
    if not found["curve"]:
        return [*lines, "  There is nothing to tell apart: outputs of both labels with different scores are needed."]
    present, best = found["present"], found["best"]
    rows = {number(each["limit"]): each for each in (*_some(found["curve"]), present, best) if each is not None}
    table = [("limit", "false positives", "missed", "")]
    for each in sorted(rows.values(), key=lambda row: float(row["limit"])):
        marks = [name for name, other in (("present", present), ("best", best)) if each == other]
        table.append((number(each["limit"]), _rate(each, "false_positive"), _rate(each, "missed"), ", ".join(marks)))
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    lines += ["  " + "  ".join(map(pad, row, widths)).rstrip() for row in table]
    return [*lines, *_advice(found)]


def _advice(found: Found) -> list[str]:
    best = found["best"]
    goal = f"false positives under {FALSE_POSITIVES:.0%} and misses under {MISSES:.0%}"
    if best is None:
        return [f"  No limit keeps {goal} on these outputs."]
    lines = [f"  limit: {number(best['limit'])} keeps {goal}."]
    highest = best["false_positive_interval"][1], best["missed_interval"][1]
    if highest[0] > FALSE_POSITIVES or highest[1] > MISSES:
        lines.append(
            f"  So few outputs do not prove it: up to {highest[0]:.0%} false positives and {highest[1]:.0%} misses are "
            "within the 95 % intervals."
        )
    return lines


def _some(curve: Sequence[Found]) -> list[Found]:
    """At most `SHOWN_LIMITS` of the curve's points, evenly spread."""
    if len(curve) <= SHOWN_LIMITS:
        return list(curve)
    places = {round(place * (len(curve) - 1) / (SHOWN_LIMITS - 1)) for place in range(SHOWN_LIMITS)}
    return [curve[place] for place in sorted(places)]


def _rate(found: Found, name: str) -> str:
    low, high = found[f"{name}_interval"]
    return f"{found[name]:.0%} [{low:.0%}, {high:.0%}]"
