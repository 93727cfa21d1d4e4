"""The reference of the Python API, made from signatures and docstrings, whose examples the how-to guides replace."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from pytest_fairness import (
    Audited,
    AuditResults,
    Corpus,
    CorpusGenerator,
    DataTable,
    FairnessCheck,
    ItemMeasurement,
    LlmClient,
    Plot,
    Request,
    Response,
    Target,
    Verdict,
    audit,
)
from pytest_fairness.options import OPTIONS
from pytest_fairness.records import Sampling

SECTIONS = ("Args", "Attributes", "Optional attributes", "Returns", "Raises", "Examples")


def documented() -> dict[str, Any]:
    """Return every documented object by its heading."""
    return {
        "audit": audit,
        "AuditResults": AuditResults,
        "Audited": Audited,
        "LlmClient": LlmClient,
        "llm_client.complete": LlmClient.complete,
        "CorpusGenerator": CorpusGenerator,
        "corpus_generator": CorpusGenerator.__call__,
        "Corpus": Corpus,
        "ItemMeasurement": ItemMeasurement,
        "FairnessCheck": FairnessCheck,
        "fairness_check": FairnessCheck.__call__,
        "Verdict": Verdict,
        "DataTable": DataTable,
        "Plot": Plot,
        "Target": Target,
        "Request": Request,
        "Response": Response,
    }


def api_reference() -> str:
    """Return the reference as Markdown."""
    return "\n\n".join(_entry(name, documented()[name]) for name in documented())


def _entry(name: str, thing: Any) -> str:
    sections = sections_of(thing)
    parts = [f"### `{name}`", sections["text"]]
    if "Args" in sections:
        parts.append(_arguments(thing, sections["Args"]))
    for heading in ("Attributes", "Optional attributes", "Raises"):
        if heading in sections:
            column = "exception" if heading == "Raises" else heading.lower().removesuffix("s")
            parts.append(_table([column, "meaning"], _entries(sections[heading])))
    if "Returns" in sections:
        parts.append(f"**Returns** {sections['Returns'][:1].lower()}{sections['Returns'][1:]}")
    if inspect.isclass(thing) and (members := list(_members(thing))):
        parts.append("\n".join(["| member | meaning |", "|---|---|", *members]))
    return "\n\n".join(filter(None, parts))


def sections_of(thing: Any) -> dict[str, str]:
    """Return the parts of a docstring by heading; `text` is what stands before the first heading."""
    pattern = rf"^({'|'.join(SECTIONS)}):\n"
    text, *rest = re.split(pattern, inspect.getdoc(thing) or "", flags=re.MULTILINE)
    found = {"text": text.strip()}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        lines = body.rstrip().split("\n")
        end = next((place for place, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
        found[heading] = textwrap.dedent("\n".join(lines[:end])).strip("\n")
        if heading == "Returns":
            found[heading] = " ".join(found[heading].split())
    return found


def _arguments(function: Callable[..., Any], text: str) -> str:
    """Return a table of arguments with their defaults; arguments that an option or a probe explains share a row."""
    parameters = inspect.signature(function).parameters
    rows = []
    known: dict[str, list[str]] = {}
    for name, meaning in _entries(text):
        default, kind = parameters[name].default, parameters[name].kind
        shown = f"{name}=" if kind is inspect.Parameter.KEYWORD_ONLY else name
        if function is audit and f"fairness_{name}" in {option.name for option in OPTIONS} and name != "target":
            known.setdefault("as the [option or setting](options.md) `fairness_…` of this name", []).append(shown)
        elif name in {field.name for field in fields(Sampling)}:
            known.setdefault("as in [`sampling`](probes.md#sampling); only what is given is sent", []).append(shown)
        else:
            value = "required" if default is inspect.Parameter.empty else "" if default is None else f"`{default!r}`"
            rows.append((shown, value, meaning))
    rows += [(", ".join(names), "", meaning) for meaning, names in known.items()]
    return _table(["argument", "default", "meaning"], rows)


def _entries(text: str) -> list[tuple[str, str]]:
    """Return the entries `name: meaning` of a section; indented lines go on with the entry."""
    entries = (" ".join(entry.split()).partition(": ") for entry in re.split(r"\n(?! )", text))
    return [(name, meaning) for name, _, meaning in entries]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name, *cells in rows:
        names = ", ".join(f"`{each}`" for each in name.split(", "))
        lines.append(f"| {' | '.join([names, *(cell.replace('|', chr(92) + '|') for cell in cells)])} |")
    return "\n".join(lines)


def _members(thing: type) -> Iterator[str]:
    """Yield a row for each public property and method that has no entry of its own."""
    members: Mapping[str, Any] = dict(inspect.getmembers(thing))
    for name, member in members.items():
        own = any(name in vars(base) for base in thing.__mro__ if base.__module__.startswith("pytest_fairness"))
        if name.startswith("_") or not own or name == "complete":
            continue
        if isinstance(member, property) or inspect.isfunction(member):
            summary = " ".join((inspect.getdoc(member) or "").partition("\n\n")[0].split()).removeprefix("Return ")
            shown = name if isinstance(member, property) else _call(name, member)
            yield f"| `{shown}` | {summary[:1].upper()}{summary[1:].replace('|', chr(92) + '|')} |"


def _call(name: str, method: Callable[..., Any]) -> str:
    names = [each for each in inspect.signature(method).parameters if each != "self"]
    return f"{name}({', '.join(names)})"
