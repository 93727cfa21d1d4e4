"""Table of measurements: one row for each item of a report document."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, signed, with_interval
from pytest_fairness.reports.items.effects import UNKNOWN
from pytest_fairness.reports.items.report_items import Item, grown_words, unit_of
from pytest_fairness.reports.tables.data_table import Cell, Column, DataTable, Row

COLUMNS = (
    Column("probe", str, "name of the probe, or of the check (`fairness_check`) in a Python test"),
    Column("item", str, "id of the item, such as `jsd[race=Black]`"),
    Column("audit", str, "name of the audit"),
    Column("title", str, "title of the audit in plain words"),
    Column("groups", str, "groups that are compared, such as `Black vs White`"),
    Column("n", int, "usable answers of all groups together"),
    Column("missing", int, "answers that were refused, blocked, unreadable, cut off or failed"),
    Column("n_by_group", str, "usable answers by group, such as `Black 60, White 60`"),
    Column("missing_by_group", str, "missing answers by group"),
    Column("value", float, "estimate"),
    Column("unit", str, "unit of the columns value, limit and baseline; for a score, its name; empty for a share"),
    Column("standard_error", float, "standard error of the estimate"),
    Column("interval_low", float, "lower bound of the 95 % confidence interval of the estimate"),
    Column("interval_high", float, "upper bound of the 95 % confidence interval of the estimate"),
    Column("p_value", float, "p-value of the null hypothesis that the groups do not differ"),
    Column(
        "size", str, "size of the effect: none, small, moderate or large; empty if unknown or without an effect size"
    ),
    Column("effect", str, "name of the effect size, such as `Cohen’s h`"),
    Column("effect_value", float, "effect size"),
    Column("tolerance", float, "worst acceptable change from the baseline"),
    Column("limit", float, "worst acceptable value, if the probe sets a limit"),
    Column("baseline", float, "value in the baseline"),
    Column("change", float, "change since the baseline; above 0 is worse"),
    Column("change_unit", str, "unit of change and tolerance: the unit of the value, or `grown words`"),
    Column("change_low", float, "lower bound of the 95 % confidence interval of the change"),
    Column("change_high", float, "upper bound of the 95 % confidence interval of the change"),
    Column("change_p_value", float, "one-sided p-value of the null hypothesis that nothing changed"),
    Column("verdict", str, "verdict; empty or `measured` if the item was not judged"),
    Column("reason", str, "reason of the verdict, or the error"),
    Column("target", str, "audited target"),
    Column("date", str, "start of the run, in UTC"),
)


GROWN_WORDS = "grown words"
"""Unit of the change of an audit that counts words that grew since the baseline."""


def measurements(document: Mapping[str, Json]) -> DataTable:
    """Return the table of a report document's items, in the document's order."""
    methods = document.get("methods", {})
    run = {"target": document["target"], "date": document["started"]}
    return DataTable(
        COLUMNS,
        [{**_row(item, methods.get(item["audit"], {})), **run} for item in document["items"]],
        [
            ("Audit", lambda row: f"{row['title']} ({row['audit']})"),
            ("Groups", lambda row: str(row["groups"])),
            ("n", lambda row: str(row["n"])),
            ("Estimate [95 % CI]", lambda row: _estimate(row, "value", "interval", number)),
            ("Unit", lambda row: str(row["unit"])),
            ("p", lambda row: _p_text(_number(row, "p_value"))),
            ("Effect size", _effect),
            ("Change [95 % CI]", _change),
            ("Verdict", lambda row: "" if row["verdict"] in (None, "measured") else str(row["verdict"])),
            ("Not measured because", lambda row: str(row["reason"] or "") if row["value"] is None else ""),
        ],
    )


def _row(item: Item, method: Mapping[str, Json]) -> dict[str, Cell]:
    change, effect, unit = item["change"] or {}, item.get("effect") or {}, unit_of(item, method)
    low, high = item["interval"] or (None, None)
    change_low, change_high = change.get("interval") or (None, None)
    groups = list(item["n"])
    return {
        "probe": item["probe"],
        "item": item["id"],
        "audit": item["audit"],
        "title": method.get("title") or item["audit"],
        "groups": (" vs " if len(groups) == 2 else ", ").join(groups),
        "n": sum(item["n"].values()),
        "missing": sum(item["missing"].values()),
        "n_by_group": _counts(item["n"]),
        "missing_by_group": _counts(item["missing"]),
        "value": item["value"],
        "unit": unit,
        "standard_error": item["standard_error"],
        "interval_low": low,
        "interval_high": high,
        "p_value": item["p_value"],
        "size": effect.get("size"),
        "effect": effect.get("name"),
        "effect_value": effect.get("value"),
        "tolerance": item["tolerance"],
        "limit": item["limit"],
        "baseline": (item["baseline"] or {}).get("value"),
        "change": change.get("value"),
        "change_unit": GROWN_WORDS if grown_words(item) else unit,
        "change_low": change_low,
        "change_high": change_high,
        "change_p_value": change.get("p_value"),
        "verdict": item["verdict"],
        "reason": item["reason"],
    }


def _counts(by_group: Mapping[str, int]) -> str:
    return ", ".join(f"{group} {count}" for group, count in by_group.items())


def _estimate(row: Row, value: str, interval: str, shown: Callable[[float], str]) -> str:
    estimate, low, high = (_number(row, name) for name in (value, f"{interval}_low", f"{interval}_high"))
    if estimate is None:
        return ""
    return with_interval(shown(estimate), None if low is None or high is None else (low, high))


def _change(row: Row) -> str:
    """Return the change with its interval or, for an audit whose change is a number of words, as `2 grown words`."""
    change = _number(row, "change")
    if change is not None and row["change_unit"] == GROWN_WORDS:
        return counted(int(change), GROWN_WORDS.removesuffix("s"))
    return _estimate(row, "change", "change", signed)


def _effect(row: Row) -> str:
    """Return the effect size with its name and its size in words: `Cohen’s h 0.62 (moderate)`."""
    if row["effect"] is None:
        return ""
    value = _number(row, "effect_value")
    return f"{row['effect']} {'infinite' if value is None else number(value)} ({row['size'] or UNKNOWN})"


def _number(row: Row, name: str) -> float | None:
    value = row[name]
    return float(value) if isinstance(value, int | float) else None


def _p_text(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
