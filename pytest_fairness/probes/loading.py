"""Loading of probe files: a probe, or one error that lists all errors of the file; JSON Schema of probe files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import diagnostics, yaml_reader
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.diagnostics import (
    DIAGNOSTIC,
    Diagnostic,
    Document,
    Lines,
    Location,
    Node,
    Part,
    dotted,
    nearest,
    not_text,
    quoted,
    suggestion,
)
from pytest_fairness.probes.field_types import PATTERNS, AuditSettings, ProbeSource, display_path, name_problem
from pytest_fairness.probes.yaml_reader import DocumentError
from pytest_fairness.records import Json

# Loader of probe files: returns a probe, or raises one error that lists all errors of the file.


class KindSchema(NamedTuple):
    """Models of a kind of probe and of its audits, for the loader."""

    model: type[Probe]
    audits: Mapping[str, type[AuditSettings]]


Kinds = Mapping[str, KindSchema]


def load(path: Path, kinds: Kinds, *, root: Path | None = None, scorers: Mapping[str, str] | None = None) -> Probe:
    """Return the probe in a file.

    Raises:
        ProbeError: the file cannot be read or has errors; the message has a line with its position for each error.
    """
    try:
        with path.open("rb") as file:
            content = file.read(yaml_reader.MAX_BYTES + 1)
    except OSError as error:
        cure = diagnostics.similar_file(path) or ": check its path and permissions"
        raise ProbeError(f"{display_path(path, root)}:1:1: cannot be read ({error.strerror or error}){cure}") from None
    return parse(content, path, kinds, root=root, scorers=scorers)


def parse(
    content: bytes, path: Path, kinds: Kinds, *, root: Path | None = None, scorers: Mapping[str, str] | None = None
) -> Probe:
    """Return the probe that `content` defines; the file `path` is used for messages and names, and need not exist."""
    text = ""
    try:
        text = yaml_reader.decode(content)
        document = yaml_reader.parse(text)
    except DocumentError as error:
        # The position of an undecodable byte is the number of characters before it.
        seen = text or content.decode("utf-8-sig", errors="replace")
        raise _error(path, root, seen, [(error.index, error.message)]) from None
    diagnostics, probe = _validated(document, kinds, ProbeSource(path, root, scorers=scorers))
    errors = [*document.errors, *((document.index(diagnostic), diagnostic.message) for diagnostic in diagnostics)]
    if errors or probe is None:
        raise _error(path, root, text, errors)
    return probe


def _error(path: Path, root: Path | None, text: str, errors: list[tuple[int, str]]) -> ProbeError:
    lines, name = Lines(text), display_path(path, root)
    rows = []
    for index, message in sorted(dict.fromkeys(errors)):
        line, column = lines.position(index)
        rows.append(f"{name}:{line}:{column}: {' '.join(message.split())}")
    return ProbeError("\n".join(rows))


def _validated(document: Document, kinds: Kinds, file: ProbeSource) -> tuple[list[Diagnostic], Probe | None]:
    """Return all diagnostics of a document, and its probe.

    The probe is `None` if `_kind_and_diagnostics` returns no kind, or if the kind's model rejects the document.
    """
    data = document.root.plain()
    kind, diagnostics = _kind_and_diagnostics(data, kinds)
    if kind is None:
        return diagnostics, None
    model = kinds[kind].model
    settings, found = _settings_and_diagnostics(document, kind, kinds, file)
    diagnostics += found
    written = data.get("audits")
    audits = kinds[kind].audits
    known = {name: audits[name] for name in audits if isinstance(written, Mapping) and name in written}
    diagnostics += model.faults(Part(data), known)
    probe = None
    if "name" not in data:
        data["name"] = file.path.stem
    try:
        loading = replace(file, audits=settings, lines=_audit_lines(document))
        probe = model.model_validate_json(json.dumps({**data, "kind": kind}), strict=True, context=loading)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        if "name" not in document.root.value and any(detail["loc"] == ("name",) for detail in details):
            details = [detail for detail in details if detail["loc"] != ("name",)]
            reason = f" ({problem})" if (problem := name_problem(file.path.stem)) else ""
            message = (
                f"the probe's file name {quoted(file.path.stem)} cannot be the name of baseline files{reason}: add "
                "`name:`, with only letters, digits, '.', '_' and '-'"
            )
            diagnostics.append(Diagnostic((), message))
        diagnostics += validation_diagnostics(details, (), document, model)
    return diagnostics, probe


def _audit_lines(document: Document) -> dict[str, int]:
    block, lines = document.root.value.get("audits"), Lines(document.text)
    return {name: lines.position(start)[0] for name, start in block.keys.items()} if block is not None else {}


def _kind_and_diagnostics(data: dict[str, object], kinds: Kinds) -> tuple[str | None, list[Diagnostic]]:
    """Return the kind whose model validates the probe, and the diagnostics of the key `kind`.

    For an unknown kind, return the most similar kind. The kind is `None` if no kind is similar, or if the key is
    missing or not a text.
    """
    names = ", ".join(kinds)
    if "kind" not in data:
        if misspelt := diagnostics.nearest("kind", data):
            return None, [Diagnostic((misspelt,), f"unknown key {quoted(misspelt)}: did you mean 'kind'?", at_key=True)]
        return None, [Diagnostic((), f"`kind` is missing: write the kind of the probe ({names})")]
    kind = data["kind"]
    if not isinstance(kind, str):
        return None, [Diagnostic(("kind",), f"`kind` must be the name of a kind of probe ({names})")]
    if kind in kinds:
        return kind, []
    unknown = Diagnostic(("kind",), f"unknown kind {quoted(kind)}{suggestion(kind, kinds)}")
    # The rest is checked as the most similar kind, so that all errors are reported at once.
    return diagnostics.nearest(kind, kinds), [unknown]


def _settings_and_diagnostics(
    document: Document, kind: str, kinds: Kinds, file: ProbeSource
) -> tuple[dict[str, AuditSettings], list[Diagnostic]]:
    block: Node | None = document.root.value.get("audits")
    known = kinds[kind].audits
    settings: dict[str, AuditSettings] = {}
    diagnostics: list[Diagnostic] = []
    for name, node in block.value.items() if block is not None and isinstance(block.value, dict) else ():
        if name not in known:
            elsewhere = next((other for other, schema in kinds.items() if name in schema.audits), None)
            cure = f": it belongs to probes of the kind {quoted(elsewhere)}" if elsewhere else suggestion(name, known)
            diagnostics.append(Diagnostic(("audits", name), f"unknown audit {quoted(name)}{cure}", at_key=True))
            continue
        written = {} if node.value is None else node.plain()
        try:
            settings[name] = known[name].model_validate_json(json.dumps(written), strict=True, context=file)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
            diagnostics += validation_diagnostics(details, ("audits", name), document, known[name])
    return settings, diagnostics


# JSON Schema of probe files, generated from the pydantic models, for completion and checks in editors.

DRAFT = "http://json-schema.org/draft-07/schema#"
ID = "urn:pytest-fairness:probe"
"""Name of the schema, which stays the same in all versions."""


def json_schema(kinds: Kinds) -> dict[str, Json]:
    """Return the JSON Schema (draft-07); the value of `kind` selects the other keys."""
    definitions: dict[str, Json] = {}
    branches = []
    for kind, (model, audits) in kinds.items():
        schema = model.model_json_schema(by_alias=True, mode="validation")
        definitions |= schema.pop("$defs", {})
        schema["properties"]["audits"] |= _audits(kind, audits, definitions)
        definitions[model.__name__] = schema
        condition = {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
        branches.append({"if": condition, "then": {"$ref": f"#/definitions/{model.__name__}"}})
    names = {"description": "Kind of the probe, which determines the other keys.", "enum": list(kinds)}
    return {
        "$schema": DRAFT,
        "$id": ID,
        "title": "pytest-fairness probe",
        "description": "One fairness probe: the prompts, the groups, and the audits that measure the answers.",
        "type": "object",
        "properties": {"kind": names},
        "required": ["kind"],
        "allOf": branches,
        "definitions": {name: _draft_07(definitions[name]) for name in sorted(definitions)},
    }


def schema_text(kinds: Kinds) -> str:
    return json.dumps(json_schema(kinds), indent=2, ensure_ascii=False) + "\n"


def _audits(kind: str, models: Mapping[str, type[AuditSettings]], definitions: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of the key `audits` for one kind: each audit's name with its settings or an empty value."""
    properties = {}
    for name, model in models.items():
        schema = model.model_json_schema(by_alias=True, mode="validation")
        definitions |= schema.pop("$defs", {})
        own = f"{kind}.{name}"
        definitions[own] = schema
        summary = schema.get("description", f"Settings of {name}.")
        properties[name] = {"description": summary, "anyOf": [{"$ref": f"#/definitions/{own}"}, {"type": "null"}]}
    return {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1}


def _draft_07(schema: Any) -> Any:
    """Return pydantic's schema converted to draft-07.

    `$defs` becomes `definitions`. A `$ref` with other keys is put into `allOf`, because draft-07 ignores keys beside a
    `$ref`. The format `path` is removed, and each required key gets a property, for strict validators.
    """
    if isinstance(schema, list):
        return [_draft_07(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # `default: null` is left out, because it only says that the key is optional.
    rest = {key: _draft_07(value) for key, value in schema.items() if not (key == "default" and value is None)}
    if "patternProperties" in rest:
        # The loader rejects keys that do not match the pattern.
        rest["additionalProperties"] = False
    if rest.get("format") == "path":
        del rest["format"]
    if "required" in rest and "properties" not in rest:
        rest["properties"] = dict.fromkeys(rest["required"], True)
    reference = rest.pop("$ref", None)
    if reference is None:
        return rest
    target = {"$ref": reference.replace("#/$defs/", "#/definitions/")}
    return {"allOf": [target], **rest} if rest else target


# Conversion of pydantic's errors into messages in the terms of a probe file.

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


def validation_diagnostics(
    errors: Iterable[ErrorDetails], prefix: Location, document: Document, model: type[BaseModel]
) -> list[Diagnostic]:
    """Return the diagnostics for the errors that pydantic found in a part of a document.

    Errors of several alternatives of a union type at the same location become one diagnostic.
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
    parts = {
        message: re.fullmatch(r"(.* must be )(.*?)(, (?:not|but) .*)", message) for message in dict.fromkeys(messages)
    }
    # If the value has the type of one alternative, the message of this alternative names the real error.
    if closer := [message for message, part in parts.items() if part is None]:
        return " or ".join(closer)
    first = next(part for part in parts.values() if part)
    return first[1] + " or ".join(part[2] for part in parts.values() if part) + first[3]


def _diagnostic(
    error: ErrorDetails, prefix: Location, document: Document, model: type[BaseModel]
) -> tuple[Diagnostic, bool]:
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
    document = Document("", _row_node(fields), [])
    details = error.errors(include_url=False, include_input=False)
    return [diagnostic.message for diagnostic in validation_diagnostics(details, (), document, model)]


def _row_node(value: Any) -> Node:
    written = None if isinstance(value, str) else json.dumps(value)
    if isinstance(value, Mapping):
        return Node({str(key): _row_node(inner) for key, inner in value.items()}, 0, 0)
    if isinstance(value, list):
        return Node([_row_node(inner) for inner in value], 0, 0)
    return Node(value, 0, 0, written=written)
