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
from pytest_fairness.probes.diagnostics import Diagnostic, Document, Location, Node, dotted, nearest, quoted, suggestion
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
    text, errors, probe = "", list[tuple[int, str]](), None
    try:
        text = yaml_reader.decode(content)
        document = yaml_reader.parse(text)
        found, probe = _validated(document, kinds, ProbeSource(path, root, scorers=scorers))
        errors = [*document.errors, *((document.index(each), each.message) for each in found)]
    except DocumentError as error:
        # The position of an undecodable byte is the number of characters before it.
        text = text or content.decode("utf-8-sig", errors="replace")
        errors = [(error.index, error.message)]
    if probe is not None and not errors:
        return probe
    lines, name = diagnostics.Lines(text), display_path(path, root)
    raise ProbeError(
        "\n".join(
            f"{name}:{':'.join(map(str, lines.position(index)))}: {' '.join(message.split())}"
            for index, message in sorted(dict.fromkeys(errors))
        )
    )


def _validated(document: Document, kinds: Kinds, file: ProbeSource) -> tuple[list[Diagnostic], Probe | None]:
    """Return all diagnostics of a document, and its probe.

    The rest of a document of an unknown kind is checked as the most similar kind, so that all errors are reported at
    once. The probe is `None` if no kind is similar, or if the kind's model rejects the document.
    """
    content = document.root.plain()
    data, names = diagnostics.Part(content), ", ".join(kinds)
    kind = data["kind"]
    if "kind" not in data:
        if misspelt := nearest("kind", content):
            return [data[misspelt].key_fault(f"unknown key {quoted(misspelt)}: did you mean 'kind'?")], None
        return [data.fault(f"`kind` is missing: write the kind of the probe ({names})")], None
    if not kind.is_text:
        return [kind.fault(f"`kind` must be the name of a kind of probe ({names})")], None
    found = []
    if kind.text not in kinds:
        found = [kind.fault(f"unknown kind {kind.quoted}{suggestion(kind.text, kinds)}")]
    name = nearest(kind.text, kinds)
    if name is None:
        return found, None
    model, audits = kinds[name]
    settings, faults = _settings(document, data["audits"], name, kinds, file)
    found += faults
    found += model.faults(data, {audit: audits[audit] for audit in audits if audit in data["audits"]})
    block, lines = document.root.value.get("audits"), diagnostics.Lines(document.text)
    places = {audit: lines.position(start)[0] for audit, start in block.keys.items()} if block is not None else {}
    loading = replace(file, audits=settings, lines=places)
    given = {"name": file.path.stem, **content, "kind": name}
    try:
        return found, model.model_validate_json(json.dumps(given), strict=True, context=loading)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
    if "name" not in data and any(detail["loc"] == ("name",) for detail in details):
        details = [detail for detail in details if detail["loc"] != ("name",)]
        reason = f" ({problem})" if (problem := name_problem(file.path.stem)) else ""
        found.append(
            data.fault(
                f"the probe's file name {quoted(file.path.stem)} cannot be the name of baseline files{reason}: add "
                "`name:`, with only letters, digits, '.', '_' and '-'"
            )
        )
    return [*found, *validation_diagnostics(details, (), document, model)], None


def _settings(
    document: Document, audits: diagnostics.Part, kind: str, kinds: Kinds, file: ProbeSource
) -> tuple[dict[str, AuditSettings], list[Diagnostic]]:
    """Return the settings of the audits, and the diagnostics of the key `audits`."""
    known = kinds[kind].audits
    settings: dict[str, AuditSettings] = {}
    found: list[Diagnostic] = []
    for audit in audits if audits.names else ():
        if audit.name not in known:
            elsewhere = next((other for other, schema in kinds.items() if audit.name in schema.audits), None)
            belongs = f": it belongs to probes of the kind {quoted(elsewhere)}" if elsewhere else ""
            near = belongs or suggestion(audit.name, known)
            found.append(audit.key_fault(f"unknown audit {quoted(audit.name)}{near}"))
            continue
        written = json.dumps({} if audit.value is None else audit.value)
        try:
            settings[audit.name] = known[audit.name].model_validate_json(written, strict=True, context=file)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
            found += validation_diagnostics(details, audit.location, document, known[audit.name])
    return settings, found


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
        if error["type"] == diagnostics.DIAGNOSTIC:
            found.append(replace(error["ctx"]["diagnostic"], location=document.find(location)[1]))
        elif error["type"] == "too_short" and len(document.find(location)[0].value) >= error["ctx"]["min_length"]:
            continue  # pydantic does not count invalid items
        else:
            diagnostic, alternative = _diagnostic(error, prefix, document, model)
            if alternative:
                groups.setdefault((diagnostic.location, diagnostic.at_key), []).append(diagnostic)
            else:
                found.append(diagnostic)
    for (location, _), group in groups.items():
        # If another alternative has an error deeper inside the value, the author meant the other alternative.
        others = (other for other in [*(other for other, _ in groups), *keys] if len(other) > len(location))
        if not any(other[: len(location)] == location for other in others):
            found.append(replace(group[0], message=_either([diagnostic.message for diagnostic in group])))
    return found


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
        keys = [key for schema in _schemas_at(model, error["loc"][:-1]) for key in schema.get("properties", {})]
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
        message = diagnostics.not_text(name, node)
        if found[-1] in ("skip", "xfail") and isinstance(node.value, bool):
            message = f"{name} must be the reason as text, not {_shown(node)}"
    elif kind in _EXPECTED:
        message = f"{name} must be {_EXPECTED[kind]}, not {_shown(node)}"
        message += _share_written(node.value) if kind == "float_type" else ""
    elif kind == "literal_error":
        message = f"{name} {_choice_constraint(str(context.get('expected', '')), node)}"
    else:
        constraint = _constraint(kind, context, error)
        message = f"{name}{'' if constraint.startswith('must ') else ':'} {constraint}"
        message += f", not {_shown(node)}" if kind in _BOUNDS else ""
    return Diagnostic(found, message), not complete


def _share_written(value: Json) -> str:
    """Return `: write 0.1` for the text `10%`; an empty text for other values."""
    percent = re.fullmatch(r"\s*([0-9]*[.,]?[0-9]+)\s*%\s*", value) if isinstance(value, str) else None
    return f": write {float(percent[1].replace(',', '.')) / 100:.6g}" if percent else ""


def _constraint(kind: str, context: Mapping[str, Any], error: ErrorDetails) -> str:
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        bound = context[key]
        return f"must be {words} {int(bound) if bound == int(bound) else bound}"
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


@cache
def _schemas_at(model: type[BaseModel], location: Location) -> list[dict[str, Json]]:
    """Return the schema at a location of a model's JSON Schema, then the schema's alternatives (`anyOf`, `$ref`, …)."""
    root = model.model_json_schema()

    def alternatives(schema: dict[str, Json]) -> list[dict[str, Json]]:
        inner = [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, ())]
        if "$ref" in schema:
            inner.append(root["$defs"][schema["$ref"].rpartition("/")[2]])
        return [schema, *(found for part in inner for found in alternatives(part))]

    found = alternatives(root)
    for part in location:
        children = []
        for schema in found:
            others = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
            named = schema.get("properties", {}).get(part, others[0])
            children.append(schema.get("items") if isinstance(part, int) else named)
        # A part that is no key is pydantic's name for an alternative of a union type.
        found = [each for child in children if isinstance(child, dict) for each in alternatives(child)] or found
    return found


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
