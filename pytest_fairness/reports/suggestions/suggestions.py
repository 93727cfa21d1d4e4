"""Suggestions of what to try next for a failed item, with YAML, words or a command to copy.

Only a measurement shows whether a suggestion helps. A suggested system prompt can be measured as a variant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import chain, count
from typing import Literal

from pytest_fairness.audits.findings import Finding
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import printable
from pytest_fairness.reports.items import variant_results
from pytest_fairness.reports.items.report_items import Item
from pytest_fairness.reports.shell_layout import shell_line
from pytest_fairness.reports.suggestions.variant_yaml import plain, system_argument, variant_yaml

Action = Literal["adopt", "variant", "filter", "sample", "other"]


@dataclass(frozen=True)
class Suggestion:
    """One suggestion for a failed item.

    Attributes:
        action: `adopt` (use a measured variant), `variant` (measure a new variant), `filter` (remove words from the
            model's output), `sample` (fine-tune on a balanced sample) or `other`.
        text: the advice, in one or two sentences.
        paste: text to copy: YAML, one word per line, or a command; empty if there is nothing to copy.
    """

    action: Action
    text: str
    paste: str = ""


def suggestions(item: Item, finding: Finding, system: str | None = None) -> dict[str, Json]:
    """Return the finding of a failed item (`found`) and the suggestions for it (`try`), as plain JSON.

    Args:
        item: item of the report document.
        finding: the finding of the item's audit.
        system: the probe's own system prompt, which precedes a suggested system prompt.
    """
    return {
        "found": printable(finding.description),
        "try": [asdict(suggestion) for suggestion in _suggestions(item, finding, system)],
    }


def _suggestions(item: Item, finding: Finding, system: str | None) -> Iterable[Suggestion]:
    measured = variant_results.variants_of(item)
    file = item["nodeid"].partition("::")[0]
    in_test = file.endswith(".py")  # without a probe file, there are no variants and samples
    best = next((name for name, variant in measured.items() if variant.get("effect") == "lower"), None)
    if best is not None:
        yield Suggestion(
            "adopt",
            f"The variant {best} reduces bias. Use its prompt in the application and as the probe's own prompt, then "
            "measure again with --fairness-fresh, because the best of several variants looks better than it is.",
        )
    elif finding.instruction and in_test:
        yield Suggestion(
            "variant",
            "Try another system prompt: pass it to the fixture `corpus_generator`, and run the test again.",
            system_argument(finding.instruction),
        )
    elif finding.instruction:
        names = chain(["debiased"], (f"debiased-{number}" for number in count(2)))
        name = next(name for name in names if name not in measured)
        known = ", because none of the probe's variants reduces bias significantly" if measured else ""
        yield Suggestion(
            "variant",
            f"Try another system prompt as a variant{known}. The next run shows whether it reduces bias, by how much, "
            "and at what cost.",
            variant_yaml(name, finding.instruction, system, existing=bool(measured)),
        )
    if finding.words:
        yield Suggestion(
            "filter",
            "Filter the model's output for these words, and repeat the request if a word occurs. This hides words; "
            "it does not change the model.",
            "\n".join(finding.words),
        )
    if finding.trainable and not in_test:
        yield Suggestion(
            "sample",
            "Fine-tune on a balanced sample of the recorded answers: the prompts of each group are paired with the "
            "same number of answers from every group.",
            shell_line(["python", "-m", "pytest_fairness", "sample", plain(file), "-o", "sample.jsonl"]),
        )
    if not finding.instruction and not finding.trainable:
        yield Suggestion(
            "other", "No system prompt can be added to these requests. Try another model, or other training data."
        )
