"""Loader of probe files: returns a probe, or raises one error that lists all errors of the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.base import Probe, variant_diagnostics
from pytest_fairness.probes.checks import Content
from pytest_fairness.probes.diagnostics import Diagnostic, nearest, quoted, similar_file, suggestion
from pytest_fairness.probes.document import Document, Lines, Node
from pytest_fairness.probes.field_types import ProbeSource, display_path
from pytest_fairness.probes.file_names import name_problem
from pytest_fairness.probes.loading import validation_messages, yaml_reader
from pytest_fairness.probes.loading.yaml_reader import DocumentError

ContentChecks = Callable[[Content, Mapping[str, type[AuditSettings]]], Iterable[Diagnostic]]
"""Function that returns diagnostics for keys that contradict each other; the pydantic models check each key alone.

Its arguments are the file's plain content, and the settings models of the probe's audits by audit name. Any part of the
content may have a wrong type, which pydantic reports separately.
"""


class KindSchema(NamedTuple):
    """Models and checks of a kind of probe, for the loader.

    Attributes:
        model: model of the kind's probes.
        audits: settings model of each audit, by audit name.
        checks: checks of the file's content; `None` if the kind has no checks of several keys together.
    """

    model: type[Probe]
    audits: Mapping[str, type[AuditSettings]]
    checks: ContentChecks | None = None


Kinds = Mapping[str, KindSchema]


def load(path: Path, kinds: Kinds, *, root: Path | None = None, scorers: Mapping[str, str] | None = None) -> Probe:
    """Read a probe file and return its probe.

    Args:
        path: the file.
        kinds: known kinds of probe, by name.
        root: folder to which paths in messages are relative, if the file is inside of it.
        scorers: scorers that the probe may name; see `ProbeSource`.

    Raises:
        ProbeError: the file has errors. The message lists all errors by position, each on a line: `path:line:column:
            message`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(yaml_reader.MAX_BYTES + 1)
    except OSError as error:
        cure = similar_file(path) or ": check its path and permissions"
        raise ProbeError(f"{display_path(path, root)}:1:1: cannot be read ({error.strerror or error}){cure}") from None
    return parse(content, path, kinds, root=root, scorers=scorers)


def parse(
    content: bytes, path: Path, kinds: Kinds, *, root: Path | None = None, scorers: Mapping[str, str] | None = None
) -> Probe:
    """Return the probe that `content` defines; the file `path` is used for messages and names, and need not exist.

    Raises:
        ProbeError: the content has errors; the message lists all of them in the form that `load` describes.
    """
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
    diagnostics += variant_diagnostics(model, data)
    if (check := kinds[kind].checks) is not None:
        diagnostics += check(data, known)
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
        diagnostics += validation_messages.diagnostics(details, (), document, model)
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
        if misspelt := nearest("kind", data):
            return None, [Diagnostic((misspelt,), f"unknown key {quoted(misspelt)}: did you mean 'kind'?", at_key=True)]
        return None, [Diagnostic((), f"`kind` is missing: write the kind of the probe ({names})")]
    kind = data["kind"]
    if not isinstance(kind, str):
        return None, [Diagnostic(("kind",), f"`kind` must be the name of a kind of probe ({names})")]
    if kind in kinds:
        return kind, []
    unknown = Diagnostic(("kind",), f"unknown kind {quoted(kind)}{suggestion(kind, kinds)}")
    # The rest is checked as the most similar kind, so that all errors are reported at once.
    return nearest(kind, kinds), [unknown]


def _settings_and_diagnostics(
    document: Document, kind: str, kinds: Kinds, file: ProbeSource
) -> tuple[dict[str, AuditSettings], list[Diagnostic]]:
    """Return the validated settings of each audit, and the diagnostics; an empty value means the default settings.

    Args:
        document: the probe file's text and tree.
        kind: kind of the probe.
        kinds: known kinds of probe, by name.
        file: the file that is being loaded.
    """
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
            diagnostics += validation_messages.diagnostics(details, ("audits", name), document, known[name])
    return settings, diagnostics
