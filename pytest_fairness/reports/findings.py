"""What to try next: suggestions for failed items, and the commands that accept values as new baselines."""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count
from typing import Literal

from pytest_fairness.records import Finding, Json, VerdictName
from pytest_fairness.reports.formatting import printable, shell_line, width_of
from pytest_fairness.reports.report_items import variants_of
from pytest_fairness.reports.view import KNOWN, Item, ItemView

# Suggestions of what to try next for a failed item, with YAML, words or a command to copy.
#
# Only a measurement shows whether a suggestion helps. A suggested system prompt can be measured as a variant.

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
    """Return the finding of a failed item (`found`) and the suggestions for it (`try`), as plain JSON."""
    return {
        "found": printable(finding.description),
        "try": [asdict(suggestion) for suggestion in _suggestions(item, finding, system)],
    }


def _suggestions(item: Item, finding: Finding, system: str | None) -> Iterable[Suggestion]:
    measured = variants_of(item)
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


# Suggested variants as YAML or Python code, ready to be copied; words of models are escaped.

MAX_LENGTH = 100
_WIDTH = 78
_FOLDED = "    system: >-"
_INDENT = " " * 6


def plain(text: str) -> str:
    """Return a name or value for use in a sentence: as one line, escaped, with at most `MAX_LENGTH` characters."""
    shown = printable(text)
    return shown if len(shown) <= MAX_LENGTH else f"{shown[:MAX_LENGTH]}…"


def variant_yaml(name: str, instruction: str, system: str | None = None, *, existing: bool = False) -> str:
    """Return a variant as YAML.

    Args:
        name: name of the variant: letters, digits and `-`.
        instruction: sentences of the system prompt.
        system: the probe's own system prompt, which precedes the instruction; `None` without a system prompt.
        existing: whether the probe already has the key `variants`.
    """
    head = ["# Under the probe's `variants`:" if existing else "variants:", f"  {name}:"]
    instruction = " ".join(printable(instruction).split())
    if system is None:
        return "\n".join([*head, _FOLDED, *_lines(instruction, _WIDTH)])
    own = system.rstrip("\n").split("\n")
    if not all(line.replace("\t", "").isprintable() for line in own):
        # YAML would escape unprintable characters of the system prompt, so that the text would be unreadable.
        return "\n".join(["# Put the probe's own `system` before this text.", variant_yaml(name, instruction)])
    # The explicit indentation (`|2`) is needed if the first line starts with a blank.
    return "\n".join([*head, "    system: |2-", *(_INDENT + line if line else "" for line in (*own, instruction))])


def system_argument(instruction: str) -> str:
    """Return a system prompt as Python code: the keyword argument `system=…`."""
    lines = textwrap.wrap(" ".join(printable(instruction).split()), _WIDTH - 8, break_on_hyphens=False)
    quoted = [json.dumps(line + " " * (line is not lines[-1]), ensure_ascii=False) for line in lines]
    return "\n".join(["system=(", *(f"    {line}" for line in quoted), ")"])


def narrowed(text: str, width: int) -> str:
    """Return YAML of `variant_yaml`, wrapped to `width` columns if this does not change the meaning of the YAML."""
    head, folded, rest = text.partition(f"{_FOLDED}\n")
    return text if not folded else "\n".join([head + _FOLDED, *_lines(rest, width)])


def _lines(text: str, width: int) -> list[str]:
    """Return the words in indented lines; words are not broken, because YAML would read the parts as two words."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else _INDENT + word
        if lines and width_of(longer) > width:
            lines.append(_INDENT + word)
        else:
            lines[-1:] = [longer]
    return lines


# Shell commands that messages suggest, ready to be copied into a shell.

WHOLE_FILE_FROM = 9
"""Minimum number of items of one file for which a command names the file instead of the items."""

ACCEPTABLE = {VerdictName.REGRESSION, VerdictName.STALE_BASELINE, VerdictName.NO_BASELINE}
"""Verdicts of failed items that would pass with the current values as the new baseline."""


def accept_command(
    items: Iterable[ItemView],
    options: Sequence[str] = (),
    root: str = "",
    all_items: Mapping[str, Collection[str]] | None = None,
) -> list[str] | None:
    """Return the command that accepts the current values of failed items as the new baseline.

    Items over their limit are left out, because the limit also applies to new baselines. Known failures are left out,
    because they are to be fixed later.

    Args:
        items: items of the run.
        options: options that select the same requests as this run (`["--fairness-target", "openai:gpt-5"]`).
        root: path from the user's working directory to pytest's rootdir, such as `..`.
        all_items: node ids of all items by file; some files may be left out.

    Returns:
        The unquoted words of the command; `None` if no failed item would pass with a new baseline.
    """
    items = list(items)
    acceptable = [view for view in items if view.status in ACCEPTABLE]
    # A new baseline of the whole file would accept its known failures, too.
    incomplete_files = {view.file for view in items if view.status == KNOWN}
    nodeids = (view.item["nodeid"] for view in acceptable)
    return rebaseline_command(nodeids, options, root, all_items, incomplete_files)


def rebaseline_command(
    nodeids: Iterable[str],
    options: Sequence[str] = (),
    root: str = "",
    all_items: Mapping[str, Collection[str]] | None = None,
    incomplete_files: Collection[str] = (),
) -> list[str] | None:
    """Return the command that makes new baselines of these items.

    The command names a whole file instead of its items in three cases: all items of the file are given, at least
    `WHOLE_FILE_FROM` items are given, or the name of an item cannot be printed on a terminal.

    Args:
        nodeids: node ids, relative to pytest's rootdir.
        options: options that select the same requests as this run (`["--fairness-target", "openai:gpt-5"]`).
        root: path from the user's working directory to pytest's rootdir, such as `..`.
        all_items: node ids of all items by file; some files may be left out.
        incomplete_files: files with other items that must keep their baselines. Such a file is not named as a whole
            merely because many of its items are given.

    Returns:
        The unquoted words of the command; `None` if no items are given.
    """
    by_file: dict[str, list[str]] = defaultdict(list)
    for nodeid in sorted(set(nodeids)):
        by_file[nodeid.partition("::")[0]].append(nodeid)

    def is_named_whole(file: str, own: Sequence[str]) -> bool:
        covered = all_items is not None and set(own) >= set(all_items.get(file, [file]))
        many = len(own) >= WHOLE_FILE_FROM and file not in incomplete_files
        return covered or many or any(printable(nodeid) != nodeid for nodeid in own)

    arguments = [
        name for file, own in sorted(by_file.items()) for name in ([file] if is_named_whole(file, own) else own)
    ]
    folder = f"{root.rstrip('/')}/" if root not in ("", ".") else ""
    return ["pytest", "--fairness-rebaseline", *options, *(folder + name for name in arguments)] if arguments else None
