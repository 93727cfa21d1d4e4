"""Parts of the documentation that are made from the code: tables of audits, options and columns, API, JSON Schemas.

    python docs/generate.py

Run it after a change of an audit's description, of a setting or of a probe's keys; a test compares the files.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from api_reference import api_reference

from pytest_fairness import kinds
from pytest_fairness.audits import registry
from pytest_fairness.audits.info import COHEN, AuditInfo
from pytest_fairness.options import markdown_table
from pytest_fairness.probes import schema_text
from pytest_fairness.reports import tables
from pytest_fairness.reports.tables import Column

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
BETTER = {"lower": "lower", "higher": "higher", "zero": "nearer 0", "fifty": "nearer 50"}


def generated() -> dict[Path, str]:
    """Return the text of every file that holds something generated."""
    probe_schema = schema_text(kinds.schemas())
    return {
        REFERENCE / "audits.md": _between(REFERENCE / "audits.md", "audits", audits_table()),
        REFERENCE / "effect-sizes.md": _between(REFERENCE / "effect-sizes.md", "effects", effects_table()),
        REFERENCE / "options.md": _between(REFERENCE / "options.md", "options", markdown_table()),
        REFERENCE / "python.md": _between(REFERENCE / "python.md", "api", api_reference()),
        REFERENCE / "tables.md": _between(
            REFERENCE / "tables.md",
            "columns",
            f"## Measurements\n\n{columns_table(tables.MEASUREMENT_COLUMNS)}\n\n"
            f"## Words\n\n{columns_table(tables.WORD_COLUMNS)}",
        ),
        ROOT / "docs" / "probe.schema.json": probe_schema,
        ROOT / "pytest_fairness" / "probes" / "probe.schema.json": probe_schema,
    }


def audits_table() -> str:
    """Return the Markdown table of all audits, a block for each kind of probe."""
    lines = ["| audit | question | unit and range | better | default tolerance |", "|---|---|---|---|---|"]
    for kind, (model, *_) in kinds.schemas().items():
        lines.append(f"| **{_linked(kind, _page(kind))}** | **{model.model_fields['kind'].description}** | | | |")
        for name in registry.AUDITS.get(kind, ()):
            info = registry.get(kind, name).info
            cells = [_linked(f"`{name}`", _place(kind, name)), info.question, _scale(info), BETTER[info.better.value]]
            tolerance = "must be set" if math.isnan(info.tolerance) else f"{info.tolerance:g}"
            lines.append(f"| {' | '.join(cells)} | {tolerance} |")
    return "\n".join(lines)


def effects_table() -> str:
    """Return the tables of effect sizes with their cut-offs, and of the audits that have each, by its formula."""
    sizes: dict[str, tuple[str, set[str]]] = {}
    formulas: dict[tuple[str, str], list[str]] = {}
    for kind, names in registry.AUDITS.items():
        for name in names:
            info = registry.get(kind, name).info
            several = sum(name in others for others in registry.AUDITS.values()) > 1
            shown = f"`{name}` ({kind})" if several else f"`{name}`"
            if info.effect is None:
                formulas.setdefault(("none", info.no_effect_size), []).append(shown)
                continue
            effect = info.effect
            formulas.setdefault((effect.name, effect.formula.replace("|", "\\|")), []).append(shown)
            sources = sizes.setdefault(effect.name, (", ".join(f"{cutoff:g}" for cutoff in effect.cutoffs), set()))[1]
            sources.add(effect.source.removeprefix(COHEN).lstrip(":; "))  # the page names Cohen once
    lines = ["| effect size | small, moderate, large from | source |", "|---|---|---|"]
    lines += [
        f"| {name} | {cuts} | {'; '.join(sorted(filter(None, sources)))} |" for name, (cuts, sources) in sizes.items()
    ]
    lines += ["", "| audit | effect size | from |", "|---|---|---|"]
    lines += [f"| {', '.join(shown)} | {name} | {formula} |" for (name, formula), shown in formulas.items()]
    return "\n".join(lines)


def _scale(info: AuditInfo) -> str:
    """Return the unit of an audit's values, and the range that they can have."""
    low, high = (f"{end:g}".replace("-", "−") for end in info.value_range)
    if high == "inf":
        values = "any number" if low == "−inf" else f"{low} or more"
    else:
        values = f"at most {high}" if low == "−inf" else f"{low} to {high}"
    return f"{info.unit}, {values}" if info.unit else values


def _linked(text: str, place: str) -> str:
    """Return a link to a place of the reference; the text alone while the page is not written yet."""
    return f"[{text}]({place})" if (REFERENCE / place.partition("#")[0]).exists() else text


def columns_table(columns: Sequence[Column]) -> str:
    """Return the Markdown table of a data table's columns."""
    types = {str: "text", int: "whole number", float: "number", bool: "yes or no"}
    rows = [f"| `{column.name}` | {types[column.type]} | {column.meaning} |" for column in columns]
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows])


def _page(kind: str) -> str:
    """Return the file name of the page of a kind of probe."""
    return f"{kind.replace('_', '-')}.md"


def _place(kind: str, name: str) -> str:
    """Return the link to an audit's section, or to the page of its kind until it has one."""
    if (REFERENCE / f"{name}.md").exists() and name != kind:
        return f"{name}.md"
    page = REFERENCE / _page(kind)
    described = page.exists() and re.search(rf"^### {name}$", page.read_text("utf-8"), re.MULTILINE)
    return f"{page.name}#{name}" if described else page.name


def _between(page: Path, name: str, text: str) -> str:
    """Return a page with the text between `<!-- NAME -->` and `<!-- end -->` replaced."""
    pattern = rf"(?<=<!-- {name} -->\n\n).*?(?=\n\n<!-- end -->)"
    replaced, count = re.subn(pattern, lambda _: text, page.read_text("utf-8"), flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{page}: expected one `<!-- {name} -->` followed by `<!-- end -->`, found {count}")
    return replaced


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, "utf-8")
