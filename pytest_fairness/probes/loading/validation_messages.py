"""Conversion of pydantic's errors into messages in the terms of a probe file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.diagnostics import (
    DIAGNOSTIC,
    Diagnostic,
    Location,
    dotted,
    nearest,
    quoted,
    suggestion,
)
from pytest_fairness.probes.document import Document, Node, not_text
from pytest_fairness.probes.field_types import PATTERNS
from pytest_fairness.records import Json

CONVERSATION_KEYS = ("messages", "turns", "measure")
"""Keys of conversations, which only some kinds of probe have."""
_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "path_type": "text",
    "none_required": "left out",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "multiple_of": ("multiple_of", "a multiple of"),
}


def diagnostics(
    errors: Iterable[ErrorDetails], prefix: Location, document: Document, model: type[BaseModel]
) -> list[Diagnostic]:
    """Return the diagnostics for the errors that pydantic found in a part of a document.

    Errors of several alternatives of a union type at the same location become one diagnostic.

    Args:
        errors: pydantic's errors of one validation.
        prefix: location of the validated part in the document.
        document: the file.
        model: model of the validated part; its keys are suggested for unknown keys.
    """
    found: list[Diagnostic] = []
    groups: dict[tuple[Location, bool], list[Diagnostic]] = {}
    keys: list[Location] = []
    for error in errors:
        location = (*prefix, *error["loc"])
        if error["type"] in ("missing", "extra_forbidden"):
            keys.append(location)
        if error["type"] == DIAGNOSTIC:
            found.append(replace(error["ctx"]["diagnostic"], location=document.find(location)[1]))
        elif not _is_secondary(error, prefix, document):
            diagnostic, alternative = _diagnostic(error, prefix, document, model)
            if alternative:
                groups.setdefault((diagnostic.location, diagnostic.at_key), []).append(diagnostic)
            else:
                found.append(diagnostic)
    for (location, _), group in groups.items():
        # If another alternative has an error deeper inside the value, the author meant the other alternative.
        if not any(_is_deeper(other, location) for other in [*(other for other, _ in groups), *keys]):
            found.append(replace(group[0], message=_either([diagnostic.message for diagnostic in group])))
    return found


def _is_secondary(error: ErrorDetails, prefix: Location, document: Document) -> bool:
    """Return whether a list is reported as too short only because pydantic does not count invalid items."""
    node, _, _ = document.find((*prefix, *error["loc"]))
    return error["type"] == "too_short" and len(node.value) >= error["ctx"]["min_length"]


def _is_deeper(location: Location, than: Location) -> bool:
    return len(location) > len(than) and location[: len(than)] == than


def _either(messages: list[str]) -> str:
    """Return one message for a value that matches no alternative of a type: `must be a list or false, not true`."""
    parts = {message: re.fullmatch(r"(.* must be )(.*?)(, not .*)", message) for message in dict.fromkeys(messages)}
    # If the value has the type of one alternative, the message of this alternative names the real error.
    if closer := [message for message, part in parts.items() if part is None]:
        return " or ".join(closer)
    first = next(part for part in parts.values() if part)
    return first[1] + " or ".join(part[2] for part in parts.values() if part) + first[3]


def _diagnostic(
    error: ErrorDetails, prefix: Location, document: Document, model: type[BaseModel]
) -> tuple[Diagnostic, bool]:
    """Return the diagnostic of an error, and whether the error is about one of several alternatives of a type."""
    location: Location = (*prefix, *error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    node, found, complete = document.find(location)
    name = f"`{dotted(found)}`" if found else "the probe"
    if kind == "extra_forbidden":
        where = f" in `{dotted(found[:-1])}`" if found[:-1] else ""
        keys = _valid_keys(model, error["loc"][:-1])
        cure = suggestion(str(found[-1]), keys)
        if len(found) == 1 and found[0] in AuditSettings.model_fields and not nearest(str(found[0]), keys):
            cure = f": write it as a setting of an audit, such as `audits: {{refusals: {{{found[0]}: …}}}}`"
        elif len(found) == 1 and found[0] in CONVERSATION_KEYS and not nearest(str(found[0]), keys):
            cure = ": only probes of the kinds counterfactual, generation and multiple_choice have conversations"
        return Diagnostic(found, f"unknown key {quoted(str(found[-1]))}{where}{cure}", at_key=True), False
    if kind == "missing":
        missing = dotted((*found, location[-1]))
        return Diagnostic(found, f"`{missing}` is missing{_described(model, error['loc'])}"), False
    if location[-1:] == ("[key]",):
        constraint = _constraint(kind, context, error)
        return Diagnostic(found, f"the name {quoted(str(found[-1]))} {constraint}", at_key=True), False
    if kind in ("string_type", "path_type"):
        message = not_text(name, node)
        if found[-1] in ("skip", "xfail") and isinstance(node.value, bool):
            message = f"{name} must be the reason as text, not {_shown(node)}"
    elif kind in _EXPECTED:
        message = f"{name} must be {_EXPECTED[kind]}, not {_shown(node)}"
        message += _share_written(node.value) if kind == "float_type" else ""
    elif kind == "literal_error":
        message = f"{name} {_choice_constraint(str(context.get('expected', '')), node)}"
    else:
        constraint = _constraint(kind, context, error)
        message = f"{name}{'' if constraint.startswith('must ') else ':'} {constraint}{_instead(kind, node)}"
    return Diagnostic(found, message), not complete


def _share_written(value: Json) -> str:
    """Return `: write 0.1` for the text `10%`; an empty text for other values."""
    percent = re.fullmatch(r"\s*([0-9]*[.,]?[0-9]+)\s*%\s*", value) if isinstance(value, str) else None
    return f": write {float(percent[1].replace(',', '.')) / 100:.6g}" if percent else ""


def _constraint(kind: str, context: Mapping[str, Any], error: ErrorDetails) -> str:
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"must be {words} {_number_text(context[key])}"
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(context["pattern"], f"must match {context['pattern']}")
    counted = "characters" if kind.startswith("string") else "entries"
    if kind in ("string_too_short", "too_short"):
        least = context.get("min_length", 1)
        return "must not be empty" if least == 1 else f"must have at least {least} {counted}"
    if kind in ("string_too_long", "too_long"):
        return f"must have at most {context.get('max_length')} {counted}"
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    if kind in ("finite_number", "json_invalid"):
        return "must be a finite number"
    return error["msg"][:1].lower() + error["msg"][1:]


def _number_text(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


def _instead(kind: str, node: Node) -> str:
    """Return the end of the message about a number out of bounds, `, not VALUE`; an empty text for other errors."""
    return f", not {_shown(node)}" if kind in _BOUNDS else ""


def _choice_constraint(expected: str, node: Node) -> str:
    choices = re.findall(r"'([^']*)'", expected)
    if not choices:
        return f"must be {expected.replace('False', 'false').replace('True', 'true')}, not {_shown(node)}"
    near = nearest(node.value, choices) if isinstance(node.value, str) else None
    return f"must be one of {', '.join(choices)}, not {_shown(node)}{suggestion(node.value, choices) if near else ''}"


def _shown(node: Node) -> str:
    match node.value:
        case None:
            return "empty"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case str():
            return f"the text {quoted(node.value)}"
        case bool():
            return node.written or str(node.value).lower()
        case _:
            return (node.written or str(node.value))[:60]


def _described(model: type[BaseModel], location: Location) -> str:
    """Return `: ` and the description of a missing key in its model; an empty text for a key without description."""
    text = next((schema["description"] for schema in _schemas_at(model, location) if "description" in schema), "")
    if text and not text[1:2].isupper():
        text = text[:1].lower() + text[1:]
    return f": {text.rstrip('.')}" if text else ""


def _valid_keys(model: type[BaseModel], location: Location) -> list[str]:
    """Return the valid keys at a location, taken from the model's JSON Schema."""
    return [key for schema in _schemas_at(model, location) for key in schema.get("properties", {})]


def _schemas_at(model: type[BaseModel], location: Location) -> list[dict[str, Json]]:
    """Return the schema at a location of a model's JSON Schema, then the schema's alternatives (`anyOf`, `$ref`, …)."""
    root = _schema(model)
    found = _alternatives(root, root)
    for part in location:
        inner = [
            choice for schema in found for child in _children(schema, part) for choice in _alternatives(root, child)
        ]
        # A part that is no key is pydantic's name for an alternative of a union type.
        found = inner or found
    return found


@cache
def _schema(model: type[BaseModel]) -> dict[str, Json]:
    return model.model_json_schema()


def _alternatives(root: dict[str, Json], schema: dict[str, Json]) -> list[dict[str, Json]]:
    inner = [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, ())]
    if "$ref" in schema:
        inner.append(root["$defs"][schema["$ref"].rpartition("/")[2]])
    return [schema, *(found for part in inner for found in _alternatives(root, part))]


def _children(schema: dict[str, Json], part: str | int) -> list[dict[str, Json]]:
    if isinstance(part, int):
        child = schema.get("items")
    else:
        others = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
        child = schema.get("properties", {}).get(part, others[0])
    return [child] if isinstance(child, dict) else []


def row_messages(error: ValidationError, fields: Mapping[str, Json], model: type[BaseModel]) -> list[str]:
    """Return the messages about a row of a data file that a pydantic model rejects.

    Args:
        error: pydantic's error.
        fields: fields of the row.
        model: the model that validated the row.
    """
    document = Document("", _row_node(fields), [])
    details = error.errors(include_url=False, include_input=False)
    return [diagnostic.message for diagnostic in diagnostics(details, (), document, model)]


def _row_node(value: Any) -> Node:
    """Return a row's value as a tree of nodes without positions."""
    written = None if isinstance(value, str) else json.dumps(value)
    if isinstance(value, Mapping):
        return Node({str(key): _row_node(inner) for key, inner in value.items()}, 0, 0)
    if isinstance(value, list):
        return Node([_row_node(inner) for inner in value], 0, 0)
    return Node(value, 0, 0, written=written)
