"""Suggestions for a failed item: what to try next, with YAML, words or a command to paste.

A suggestion is to be tried and measured; nothing is promised. Variants measure whether a system prompt lowers bias.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from pytest_fairness.audits.findings import Finding
from pytest_fairness.records import Json
from pytest_fairness.reports import variant_results
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.report_items import Item
from pytest_fairness.reports.variant_yaml import plain, variant_yaml

Action = Literal["adopt", "variant", "filter", "sample", "other"]


@dataclass(frozen=True)
class Suggestion:
    """One thing to try.

    Attributes:
        action: `adopt` a variant that was measured, try a new `variant`, a `filter` of words behind the model, a
            balanced `sample` to fine-tune on, or some `other` thing.
        text: what to do, in a sentence or two.
        paste: what is ready to be pasted: YAML, words one a line, or a command; empty where there is nothing.
    """

    action: Action
    text: str
    paste: str = ""


def suggestions(item: Item, finding: Finding, system: str | None = None) -> dict[str, Json]:
    """Return what a failed item found, in words, and what to try next.

    Args:
        item: item of the report document.
        finding: what the item's audit found.
        system: the probe's own system prompt, which a suggested one continues.
    """
    return {
        "found": printable(finding.description),
        "try": [asdict(each) for each in _to_try(item, finding, system)],
    }


def _to_try(item: Item, finding: Finding, system: str | None) -> Iterable[Suggestion]:
    measured = variant_results.of(item)
    best = next((name for name, variant in measured.items() if variant.get("effect") == "lower"), None)
    if best is not None:
        yield Suggestion(
            "adopt",
            f"The variant {best} lowers it. Give the application its wording, make it the probe's own, and ask afresh: "
            "of several variants the best one looks better than it is.",
        )
    elif finding.instruction:
        name = next(name for name in _names() if name not in measured)
        known = " beside those without a significant change" if measured else ""
        yield Suggestion(
            "variant",
            f"Try another system prompt as a variant{known}; the next run says whether it lowers bias, by how much and "
            "at what price.",
            variant_yaml(name, finding.instruction, system, existing=bool(measured)),
        )
    if finding.words:
        yield Suggestion(
            "filter",
            "Or have a filter behind the model look for these words, and ask again where it finds one. It hides words, "
            "and does not change what the model holds.",
            "\n".join(finding.words),
        )
    if finding.trainable:
        file = item["nodeid"].partition("::")[0]
        yield Suggestion(
            "sample",
            "Or fine-tune on a balanced sample of the recorded answers, in which every group's questions get the "
            "answers of all groups alike.",
            f"python -m pytest_fairness sample {shlex.quote(plain(file))} -o sample.jsonl",
        )
    if not finding.instruction and not finding.trainable:
        yield Suggestion("other", "No system prompt is sent with these questions: try another model, or other data.")


def _names() -> Iterable[str]:
    yield "debiased"
    number = 2
    while True:
        yield f"debiased-{number}"
        number += 1
