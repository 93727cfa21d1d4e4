"""The reference of the Python API, made from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
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
from pytest_fairness.audits import registry

SECTIONS = ("Args", "Attributes", "Optional attributes", "Returns", "Raises", "Examples")
AUDITS = tuple(name for name in registry.AUDITS["generation"] if name in vars(Corpus))


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
        **{f"corpus.{name}": getattr(Corpus, name) for name in AUDITS},
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
    parts = [f"### `{name}`"]
    if not inspect.isclass(thing):
        parts.append(f"```text\n{_signature(name, thing)}\n```")
    parts.append(sections["text"])
    for heading in ("Args", "Attributes", "Optional attributes", "Raises"):
        if heading in sections:
            column = {"Args": "argument", "Raises": "exception"}.get(heading, heading.lower().removesuffix("s"))
            parts.append(_table(column, sections[heading]))
    if "Returns" in sections:
        parts.append(f"**Returns** {sections['Returns'][:1].lower()}{sections['Returns'][1:]}")
    if inspect.isclass(thing) and (members := list(_members(thing))):
        parts.append("\n".join(["| member | meaning |", "|---|---|", *members]))
    if "Examples" in sections:
        parts.append(f"```pycon\n{sections['Examples']}\n```")
    return "\n\n".join(parts)


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


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.name != "self"]
    parameters = [
        f"{each.name}: {each.annotation}" + ("" if each.default is each.empty else f" = {each.default!r}")
        for each in own
    ]
    kinds = [each.kind for each in own]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{name}({', '.join(parameters)}) -> {signature.return_annotation}"
    if len(line) <= 100:
        return line
    body = "".join(f"    {parameter},\n" for parameter in parameters)
    return f"{name}(\n{body}) -> {signature.return_annotation}"


def _table(column: str, text: str) -> str:
    """Return a section of `name: meaning` entries as a table; indented lines go on with the entry."""
    entries = re.split(r"\n(?! )", text)
    rows = []
    for entry in entries:
        name, _, meaning = " ".join(entry.split()).partition(": ")
        names = ", ".join(f"`{each}`" for each in name.split(", "))
        rows.append(f"| {names} | {meaning.replace('|', chr(92) + '|')} |")
    return "\n".join([f"| {column} | meaning |", "|---|---|", *rows])


def _members(thing: type) -> Iterator[str]:
    """Yield a row for each public property and method that has no entry of its own."""
    members: Mapping[str, Any] = dict(inspect.getmembers(thing))
    for name, member in members.items():
        own = any(name in vars(base) for base in thing.__mro__ if base.__module__.startswith("pytest_fairness"))
        if name.startswith("_") or not own or (thing is Corpus and name in AUDITS) or name == "complete":
            continue
        if isinstance(member, property) or inspect.isfunction(member):
            summary = " ".join((inspect.getdoc(member) or "").partition("\n\n")[0].split()).removeprefix("Return ")
            shown = name if isinstance(member, property) else _call(name, member)
            yield f"| `{shown}` | {summary[:1].upper()}{summary[1:].replace('|', chr(92) + '|')} |"


def _call(name: str, method: Callable[..., Any]) -> str:
    names = [each for each in inspect.signature(method).parameters if each != "self"]
    return f"{name}({', '.join(names)})"
