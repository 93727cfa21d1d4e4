"""Report files: reading, writing, and the comparison of two reports."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pytest_fairness import extensions
from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.records import Interval, Json, VerdictName, current_id
from pytest_fairness.reports import markdown
from pytest_fairness.reports.document import explanation_of
from pytest_fairness.reports.formatting import cut_middle, number, printable, signed, text_table, with_interval
from pytest_fairness.reports.markdown import code_quality, escaped
from pytest_fairness.reports.markdown import table as markdown_table
from pytest_fairness.reports.view import WORDS, WORST_FIRST, Item, status_of
from pytest_fairness.resources import replace_file
from pytest_fairness.stats import intervals

# Reading and writing of report files; the suffix selects the format.

SUFFIXES = (".json", ".html", ".md")
COMMENT = ".comment.md"
"""Last part of the name of a report file with a comment on a pull request, which the run writes."""
CODE_QUALITY = ".codequality.json"
"""Last part of the name of a report file in GitLab's Code Quality format."""
_NAME_A_REPORT = "Name a report that `pytest --fairness --fairness-report report.json` wrote."
MAX_DIGITS = 15
"""Maximum number of characters (digits and sign) of an integer that is read; longer integers become floats."""

Trends = Mapping[tuple[str, str], Sequence[Mapping[str, Json]]]
"""History of each item, by probe and item id; see `html.report`."""


def require_writable(path: Path, option: str = "--fairness-report") -> None:
    """Raise an error if the path's format cannot be written; called before any request is sent."""
    built_in = [suffix.removeprefix(".") for suffix in SUFFIXES]
    own = {f".{name}": entry for name, entry in extensions.declared("reports", built_in).items()}
    if entry := own.get(path.suffix.lower()):
        extensions.load(entry)
    elif path.suffix.lower() not in SUFFIXES:
        known = ", ".join([*SUFFIXES, COMMENT, CODE_QUALITY, *sorted(own)])
        raise FairnessError(f"{option} {path.name}: the suffix selects the format and must be one of {known}.")
    if path.suffix.lower() == ".html":
        # Deferred: templates and charts take time to import, and few runs write an HTML report.
        from pytest_fairness.reports import html

        try:
            html.require_extra()
        except FairnessError as error:
            raise FairnessError(f"{option} {path.name}: {error}") from error


def write(
    document: Mapping[str, Json], path: Path, trends: Trends, folder: str = "", option: str = "--fairness-report"
) -> None:
    """Write a report document in the format of the path's suffix; create missing folders."""
    match path.suffix.lower():
        case ".html":
            from pytest_fairness.reports import html

            text = html.report(document, trends)
        case ".md":
            text = markdown.report(document)
        case ".json" if path.name.lower().endswith(CODE_QUALITY):
            text = code_quality(document, folder)
        case ".json":
            text = _json(document)
        case suffix:
            text = extensions.load(extensions.declared("reports")[suffix.removeprefix(".")])(document)
    write_text(path, text, option)


def write_text(path: Path, text: str, option: str) -> None:
    """Write the text of a report to a file; create missing folders."""
    try:
        # Python escapes a lone surrogate in the same way as JSON; the other formats contain no surrogates.
        replace_file(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        reason = error.strerror or error
        raise FairnessError(f"{option} {path}: the report cannot be written ({reason}). Name another file.") from error


def _json(document: Mapping[str, Json]) -> str:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    # JSON permits the control character DEL unescaped; a terminal that prints the file should not receive it.
    return text.replace("\x7f", "\\u007f") + "\n"


def read(path: Path) -> dict[str, Json]:
    try:
        document = json.loads(path.read_bytes(), parse_int=_whole_number)
    except OSError as error:
        raise FairnessError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise FairnessError(f"{path}: not valid JSON ({error}). {_NAME_A_REPORT}") from error
    # Deferred: jsonschema takes time to import.
    from jsonschema import Draft7Validator

    try:
        violation = next(Draft7Validator(json.loads(schema_text())).iter_errors(document), None)
    except RecursionError:
        raise FairnessError(
            f"{path}: not a report of pytest-fairness: the JSON is nested too deeply. {_NAME_A_REPORT}"
        ) from None
    if violation is not None:
        where = "" if violation.json_path == "$" else f"{violation.json_path}: "
        reason = violation.message[:200]
        raise FairnessError(f"{path}: not a report of pytest-fairness: {where}{reason}. {_NAME_A_REPORT}")
    report: dict[str, Json] = document
    for item in report["items"]:
        if "explanation" not in item:  # a report of version 0.2
            item["explanation"] = explanation_of(item).to_json()
    return report


def _whole_number(digits: str) -> float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def schema_text() -> str:
    return (files("pytest_fairness.reports") / "report.schema.json").read_text("utf-8")


# Comparison of two report documents.

State = Literal["worse", "new", "removed", "better", "value changed", "unchanged"]
"""State of an item in the new run.

`worse` and `better` refer to the verdict. `value changed` means that the verdict is the same, but the 95 % confidence
interval of the difference excludes 0.
"""

ORDER: Sequence[State] = ("worse", "new", "removed", "value changed", "better", "unchanged")
"""Order in which items are listed."""

FACTS = ("target", "target_version", "commit", "tool", "started", "seconds")
"""Keys of facts about runs in the report document. Reports of earlier versions lack some facts."""
NAMES = {
    "target_version": "version of the target",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "cost": "cost",
    "oldest_reused": "oldest reused answer",
    "known": "known failures",
}
"""Names of facts by key.

A fact that is not listed is shown by its key; if it is a fact about requests, by `requests` and its key.
"""
COUNTS = ("total", "passed", "failed", "inconclusive", "errors", "known")


@dataclass(frozen=True)
class ItemComparison:
    """Comparison of one item between two runs.

    Attributes:
        probe, id: name of the probe and id of the item.
        state: how the item changed.
        old, new: the item in the old and the new report document; `None` if it is absent there.
        difference: new value minus old value; `None` if a value is missing.
        interval: 95 % confidence interval of the difference, as if the runs were independent; `None` if a value or
            a standard error is missing.
    """

    probe: str
    id: str
    state: State
    old: Item | None
    new: Item | None
    difference: float | None
    interval: Interval | None


@dataclass(frozen=True)
class RunComparison:
    """Comparison of two runs.

    Attributes:
        items: all items of both runs, ordered by state.
        facts: targets, dates, counts and requests of both runs; each fact has a name, an old value and a new value.
    """

    items: Sequence[ItemComparison]
    facts: Sequence[tuple[str, Json, Json]]

    def count(self, state: State) -> int:
        return sum(item.state == state for item in self.items)

    @property
    def changed_items(self) -> Sequence[ItemComparison]:
        return [item for item in self.items if item.state != "unchanged"]


def compare(old: Mapping[str, Json], new: Mapping[str, Json]) -> RunComparison:
    """Return the comparison of two report documents, whose items are matched by probe and id."""
    old_items, new_items = (
        {(item["probe"], current_id(item["id"])): item for item in document["items"]} for document in (old, new)
    )
    items = [_change(*key, old_items.get(key), new_items.get(key)) for key in sorted({*old_items, *new_items})]
    facts: list[tuple[str, Json, Json]] = [
        *((NAMES.get(name, name), old.get(name), new.get(name)) for name in FACTS),
        *((NAMES.get(name, name), old["summary"].get(name, 0), new["summary"].get(name, 0)) for name in COUNTS),
        *(
            (NAMES.get(name, f"requests {name}"), count, new["requests"][name])
            for name, count in old["requests"].items()
            if name != "failures"  # their number is a fact of its own
        ),
    ]
    return RunComparison(sorted(items, key=_sort_key), facts)


def _change(probe: str, name: str, old: Item | None, new: Item | None) -> ItemComparison:
    if old is None or new is None:
        return ItemComparison(probe, name, "new" if old is None else "removed", old, new, None, None)
    difference, interval = _difference(old, new)
    ranks = [WORST_FIRST.index(VerdictName(item["verdict"])) for item in (old, new)]
    state: State = "unchanged"
    if ranks[0] != ranks[1]:
        state = "worse" if ranks[1] < ranks[0] else "better"
    elif interval is not None and not interval[0] <= 0 <= interval[1]:
        state = "value changed"
    return ItemComparison(probe, name, state, old, new, difference, interval)


def _difference(old: Item, new: Item) -> tuple[float | None, Interval | None]:
    if old["value"] is None or new["value"] is None:
        return None, None
    difference = float(new["value"] - old["value"])
    if old["standard_error"] is None or new["standard_error"] is None:
        return difference, None
    return difference, intervals.interval(difference, math.hypot(old["standard_error"], new["standard_error"]))


def _sort_key(item: ItemComparison) -> tuple[int, int, str, str]:
    verdict = WORST_FIRST.index(VerdictName(item.new["verdict"])) if item.new else len(WORST_FIRST)
    return ORDER.index(item.state), verdict, item.probe, item.id


# Output of the command `compare`: a comparison of two runs as terminal text, Markdown and HTML.

HEADINGS = ("item", "change", "verdict", "old", "new", "difference [95 %]")
INDENT = "  "


def comparison_text(comparison: RunComparison, width: int = 100) -> str:
    """Return a table of the changed items and a table of facts about both runs, at most `width` columns wide."""
    lines = [_headline(comparison), ""]
    if comparison.changed_items:
        # Each item has a line of its own, so that a narrow terminal cuts no value.
        names, rows = zip(*((name, cells) for name, *cells in map(_cells, comparison.changed_items)), strict=True)
        heading, *values = text_table([HEADINGS[1:], *rows], width - len(INDENT), right=(2, 3))
        lines.append(INDENT + heading)
        for name, line in zip(names, values, strict=True):
            lines += [cut_middle(name, width), INDENT + line]
        lines.append("")
    facts = [(name, _fact(old), _fact(new)) for name, old, new in comparison.facts]
    lines += text_table([("", "old", "new"), *facts], width)
    return "\n".join(lines) + "\n"


def comparison_markdown(comparison: RunComparison) -> str:
    lines = ["## Fairness: comparison of two runs", "", _headline(comparison), ""]
    if comparison.changed_items:
        lines += [
            *markdown_table(HEADINGS, ([escaped(cell) for cell in _cells(item)] for item in comparison.changed_items)),
            "",
        ]
    facts = [[escaped(cell) for cell in (name, _fact(old), _fact(new))] for name, old, new in comparison.facts]
    summary = "<summary>Facts about the two runs</summary>"
    lines += ["<details>", summary, "", *markdown_table(("", "old", "new"), facts)]
    return "\n".join([*lines, "", "</details>"]) + "\n"


def comparison_html(comparison: RunComparison) -> str:
    from pytest_fairness.reports.charts import Table
    from pytest_fairness.reports.html import clean, render

    rows = [[clean(cell) for cell in _cells(item)] for item in comparison.changed_items]
    facts = [[name, *(clean(_fact(value)) for value in values)] for name, *values in comparison.facts]
    return render(
        "compare.html.j2",
        headline=_headline(comparison),
        changed=Table(HEADINGS, rows),
        facts=Table(("", "old", "new"), facts),
    )


def _headline(comparison: RunComparison) -> str:
    counts = [f"{comparison.count(state)} {state}" for state in ORDER if comparison.count(state)]
    return (
        f"{counted(len(comparison.items), 'item')}: {', '.join(counts)}"
        if comparison.items
        else "Neither run has items"
    )


def _cells(item: ItemComparison) -> tuple[str, ...]:
    difference = "" if item.difference is None else with_interval(signed(item.difference), item.interval)
    words = [_significant_words(side) for side in (item.old, item.new) if side]
    if len(words) == 2 and any(words):
        # Two runs with the same number of significant words may have different words.
        old_words, new_words = words
        difference += f" ({counted(len(new_words - old_words), 'new word')}, {len(old_words - new_words)} gone)"
    verdicts = dict.fromkeys(WORDS[status_of(side)].partition(" ")[2] for side in (item.old, item.new) if side)
    old, new = ("" if side is None else number(side["value"]) for side in (item.old, item.new))
    return (printable(f"{item.probe} {item.id}"), item.state, " → ".join(verdicts), old, new, difference)


def _significant_words(item: Item) -> set[str]:
    return {word["name"].casefold() for word in item["explanation"]["words"] if word["unit"] == "z"}


def _fact(value: Json) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if value is None or isinstance(value, float) else printable(str(value))
