"""Invented results, and the report documents of runs with them."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pytest_fairness.audits import registry
from pytest_fairness.records import Comparison, ItemResult, Json, Measurement, Quote, Verdict, VerdictName
from pytest_fairness.reports.document import explanation_of, report_document

REASON = "0.0612 bits over chance, was 0.0178: worse by 0.0434, tolerance 0.02; significant (p < 0.001, alpha 0.01)."
EXAMPLE = "A rich hair oil. It smooths every braid and keeps the scalp fresh for days on end."
AUDITS = {name: registry.get(kind, name) for kind, names in registry.AUDITS.items() for name in names}
DETAILS: dict[str, dict[str, Json]] = {
    "jsd": {
        "bits": 0.3,
        "null_mean": 0.239,
        "null_sd": 0.011,
        "contributions": [
            {"word": "hair", "bits": 0.0123, "share": 0.2, "side": "marked"},
            {"word": "tie", "bits": 0.0101, "share": 0.17, "side": "unmarked"},
            {"word": "oil", "bits": 0.0081, "share": 0.13, "side": "marked"},
        ],
        "examples": [{"group": "Black", "text": EXAMPLE}],
    },
    "svm": {
        "accuracy": 0.93,
        "fold_sd": 0.02,
        "null_mean": 0.5,
        "null_sd": 0.08,
        "top_words": {
            "marked": [{"word": "hair", "weight": 0.9}, {"word": "oil", "weight": 0.4}],
            "unmarked": [{"word": "tie", "weight": -0.7}],
        },
    },
    "mmd": {
        "null_sd": 0.004,
        "by_stratum": {"gender=man": 0.01, "gender=woman": 0.05},
        "top_words": {
            "marked": [{"word": "hair", "weight": 0.09}, {"word": "oil", "weight": 0.04}],
            "unmarked": [{"word": "tie", "weight": 0.07}],
        },
    },
    "marked_words": {
        "words": [
            {
                "word": "hair",
                "z": 6.12,
                "log_odds": 2.0,
                "side": "marked",
                "marked": 41,
                "unmarked": 3,
                "documents": 17,
                "significant": True,
            },
            {
                "word": "tie",
                "z": -4.5,
                "log_odds": -1.9,
                "side": "unmarked",
                "marked": 1,
                "unmarked": 22,
                "documents": 12,
                "significant": True,
            },
            {
                "word": "nice",
                "z": 2.0,
                "log_odds": 0.4,
                "side": "marked",
                "marked": 9,
                "unmarked": 5,
                "documents": 12,
                "significant": False,
            },
        ],
    },
    "refusals": {},
}


def result(
    verdict: VerdictName = VerdictName.PASS,
    *,
    audit: str = "jsd",
    value: str = "Black",
    probe: str = "products",
    reason: str | None = None,
    **more: Any,
) -> ItemResult:
    """Return the result of an item, measured and compared unless the verdict excludes it."""
    name = f"{audit}[race={value}]"
    measured = verdict.outcome != "error"
    compared = measured and verdict not in (VerdictName.NO_BASELINE, VerdictName.STALE_BASELINE)
    given: dict[str, Any] = {
        "measurement": Measurement(
            0.0612345, (0.048, 0.0741), 0.0066, 0.001, {value: 45, "White": 44}, {"White": 1}, DETAILS.get(audit, {})
        )
        if measured
        else None,
        "comparison": Comparison(0.0434, (0.0291, 0.0572), 0.007, 0.0005) if compared else None,
        "baseline": {"value": 0.0178, "target": "openai:model", "date": "2026-01-02T03:04:05Z"} if compared else None,
        "tolerance": 0.02,
    }
    found = ItemResult(
        nodeid=f"probes/{probe}.yaml::{name}",
        probe=probe,
        id=name,
        audit=audit,
        labels={"race": value},
        verdict=Verdict(verdict, reason or f"{name}: {REASON}", 0.01),
        method=AUDITS[audit].info.to_json() if audit in AUDITS else {},
        **{**given, **more},
    )
    if verdict.outcome != "failed" or not compared or not DETAILS.get(audit) or "measurement" in more:
        return explained(found)
    return with_finding(found)


def explained(found: ItemResult, **more: Any) -> ItemResult:
    """Return the result with what its details say, and with these further fields of its explanation."""
    known = {"examples": found.explanation.examples or quotes(found), **more}
    return replace(found, explanation=replace(explanation_of(found.to_json()), **known))


def quotes(found: ItemResult) -> list[Quote]:
    """Return the answers in the detail `examples`, which tests write in place of those of a run."""
    examples = found.measurement.details.get("examples") if found.measurement else None
    known = {field.name for field in fields(Quote)}
    return [
        Quote(**{"group": "example", "text": None, **{name: part for name, part in example.items() if name in known}})
        for example in (examples if isinstance(examples, list) else ())
        if isinstance(example, Mapping)
    ]


def with_finding(found: ItemResult) -> ItemResult:
    """Return the result with its audit's finding."""
    return explained(found, finding=AUDITS[found.audit].finding(explained(found)))


def report(*results: ItemResult, **requests: int) -> dict[str, Json]:
    """Return the report document of a run with these results."""
    counts = {"planned": 225, "sent": 200, "reused": 25, "prompt_tokens": 12000, "completion_tokens": 51234}
    return report_document(
        results,
        tool_version="1.2.3",
        target="openai:model",
        started=1767323045.0,
        seconds=12.34567,
        requests={**counts, **requests},
    )
