"""Profile of a run for people who answer for the system: bias scenarios, model card, technical documentation.

The page says what was tested, on whom and how, with what result, and what was not tested; it claims no compliance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.document import texts_of_notes
from pytest_fairness.reports.formatting import number, with_interval
from pytest_fairness.reports.pages import TO_WRITE, Page, Section, Sheet
from pytest_fairness.reports.view import ItemView, mappings_in, views

NO_CLAIM = (
    "This page lists results of tests. It is no statement that the system, or its use, complies with any law or "
    "standard."
)


def page(document: Mapping[str, Json]) -> Page:
    """Return the profile of the run of a report document."""
    items = views(document)
    by_probe: dict[str, list[ItemView]] = defaultdict(list)
    for view in items:
        by_probe[view.item["probe"]].append(view)
    tested = [view for view in items if view.item["value"] is not None]
    answers = document["requests"]["sent"] + document["requests"]["reused"]
    facts = [
        ("audited system", document["target"]),
        ("its version", document.get("target_version") or ", ".join(_served(items))),
        ("date of the test", document["started"]),
        ("commit of the tests", document.get("commit") or ""),
        ("answers", f"{answers:,}" if answers else "from files"),
        ("computed by", document["tool"]),
        ("intended use of the system", ""),
    ]
    sections = [
        Section("What this page is", [NO_CLAIM]),
        _scenarios(document, by_probe),
        _results(tested),
        *_counts(tested),
        _methods(document, tested),
        _not_tested(document, items),
        _responses(document, items),
    ]
    return Page(f"Fairness profile of {document['target']}", facts, sections)


def _served(items: Sequence[ItemView]) -> list[str]:
    return sorted({view.explanation.served for view in items} - {""})


def _scenarios(document: Mapping[str, Json], by_probe: Mapping[str, Sequence[ItemView]]) -> Section:
    """Return the bias scenarios in the six parts of prEN 18283, from the probes and their blocks `risk`."""
    sheets = []
    for probe, items in sorted(by_probe.items()):
        risk = document.get("risks", {}).get(probe, {})
        limits = dict.fromkeys(f"{view.item['audit']}: {_threshold(view)}" for view in items)
        because = [f"Because: {risk['threshold_because']}"] if "threshold_because" in risk else []
        due = [f"By {risk['review_by']}."] if "review_by" in risk else []
        parts = {
            "group at risk": ", ".join(risk.get("groups") or dict.fromkeys(view.subject for view in items)),
            "hazard": risk.get("hazard") or document["purposes"].get(probe, ""),
            "harm": risk.get("harm", ""),
            "measure": ", ".join(dict.fromkeys(view.title for view in items)),
            "threshold": " ".join(["; ".join(limits) + ".", *because]),
            "mitigation": risk.get("mitigation", ""),
            "review": " ".join([*due, "After each verdict other than pass."]),
            "owner": risk.get("owner", ""),
        }
        rows = [[name, text or TO_WRITE] for name, text in parts.items()]
        sheets.append(Sheet(f"Probe {probe}", ["part", "in the words of the probe"], rows, words=True))
    sentence = "The six parts of a bias profile by prEN 18283: group, hazard, measure, threshold, mitigation, review."
    return Section("Bias scenarios", [sentence], sheets, own_page=True)


def _name(view: ItemView) -> str:
    return f"{view.item['probe']} {view.item['id']}"


def _threshold(view: ItemView) -> str:
    limit, tolerance = view.item["limit"], view.item["tolerance"]
    parts = [f"limit {number(limit)}"] if limit is not None else []
    parts += [f"tolerance {number(tolerance)}"] if tolerance is not None else []
    return ", ".join(parts) or "none"


def _results(tested: Sequence[ItemView]) -> Section:
    rows = [
        [
            _name(view),
            f"{sum(view.item['n'].values()):,}",
            with_interval(number(view.item["value"]), view.item["interval"]),
            "" if view.item["p_value"] is None else number(view.item["p_value"]),
            _threshold(view),
            view.item["verdict"],
        ]
        for view in tested
    ]
    columns = ["measurement", "answers", "value [95 %]", "p", "threshold", "verdict"]
    return Section("Results", (), [Sheet("All measurements of the run", columns, rows)], own_page=True)


def _counts(tested: Sequence[ItemView]) -> list[Section]:
    """Return a section for each measurement of rates: the records, rate and ratio of each of its groups."""
    found = []
    for view in tested:
        rates = [rate for rate in mappings_in(view.item["details"].get("rates")) if "records" in rate]
        if not rates:
            continue
        has_ratio = any("ratio" in rate for rate in rates)
        rows = [
            [
                str(rate.get("group")),
                f"{rate['records']:,}",
                number(rate.get("hits")),
                f"{rate['rate']:.1%}",
                *([_ratio(rate)] if has_ratio else []),
            ]
            for rate in rates
        ]
        unlisted = view.item["details"].get("unlisted") or {}
        if unlisted.get("records"):
            rows.append(["unknown or another group", f"{unlisted['records']:,}", number(unlisted.get("hits")), "", ""])
        columns = ["group", "records", "positive", "rate", *(["impact ratio"] if has_ratio else [])]
        rows = [row[: len(columns)] for row in rows]
        found.append(Section(f"Counts of {_name(view)}", (), [Sheet(view.title, columns, rows)], own_page=True))
    return found


def _ratio(rate: Mapping[str, Json]) -> str:
    if rate.get("left_out"):
        return f"left out ({rate['left_out']})"
    return "not defined" if rate.get("ratio") is None else f"{rate['ratio']:.3f}"


def _methods(document: Mapping[str, Json], tested: Sequence[ItemView]) -> Section:
    used = {view.item["audit"] for view in tested}
    rows = [
        [name, str(method.get("question", "")), str(method.get("formula", "")), str(method.get("source", ""))]
        for name, method in document["methods"].items()
        if name in used
    ]
    sheet = Sheet("Audits", ["audit", "question", "value", "source"], rows, words=True)
    return Section("How it was measured", (), [sheet])


def _not_tested(document: Mapping[str, Json], items: Sequence[ItemView]) -> Section:
    """Return what the run could not test or decide, and the notes on the run."""
    lost = [f"{_name(view)}: {view.item['verdict']}." for view in items if view.outcome == "error"]
    open_ = [view for view in items if view.outcome == "inconclusive"]
    undecided = [f"{_name(view)}: too few answers to decide." for view in open_]
    doubts = [f"{_name(view)}: {concern['message']}." for view in items for concern in view.item.get("concerns") or ()]
    sentences = [*lost, *undecided, *doubts, *texts_of_notes(document)]
    other = "Groups, languages, uses and hazards without a probe were not tested. Which of them matter"
    return Section("What was not tested, and doubts", [*dict.fromkeys(sentences), f"{other}: {TO_WRITE}."])


def _responses(document: Mapping[str, Json], items: Sequence[ItemView]) -> Section:
    """Return what was done, or is done, about findings: mitigations, and reasons of expected failures."""
    known = {
        f"{_name(view)}: {expected['reason']}"
        for view in items
        if (expected := view.item["expected_failure"]) is not None
    }
    risks: Mapping[str, Mapping[str, Json]] = document.get("risks", {})
    done = [f"{probe}: {risk['mitigation']}" for probe, risk in risks.items() if "mitigation" in risk]
    failed = [f"{_name(view)} ({view.item['verdict']})" for view in items if view.outcome == "failed"]
    said = [*done, *sorted(known)] or [f"Response: {TO_WRITE}."]
    return Section("Response to findings", [f"Findings of this run: {', '.join(failed) or 'none'}.", *said])
