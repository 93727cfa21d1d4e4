"""JSON Schema of probe files, generated from the pydantic models, for completion and checks in editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.loading.loader import Kinds
from pytest_fairness.records import Json

DRAFT = "http://json-schema.org/draft-07/schema#"
ID = "urn:pytest-fairness:probe"
"""Name of the schema, which stays the same in all versions."""


def json_schema(kinds: Kinds) -> dict[str, Json]:
    """Return the JSON Schema (draft-07); the value of `kind` selects the other keys.

    Args:
        kinds: known kinds of probe, by name.
    """
    definitions: dict[str, Json] = {}
    branches = []
    for kind, (model, audits, _) in kinds.items():
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
    """Return the JSON Schema as indented text."""
    return json.dumps(json_schema(kinds), indent=2, ensure_ascii=False) + "\n"


def _audits(kind: str, models: Mapping[str, type[AuditSettings]], definitions: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of the key `audits` for one kind: each audit's name with its settings or an empty value.

    The schemas of the settings are added to `definitions`.
    """
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
