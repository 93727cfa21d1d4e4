"""Checks that the keys of a generation probe fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_fairness.probes import checks, conversations, structured
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.checks import Content
from pytest_fairness.probes.diagnostics import Diagnostic, Location, quoted, suggestion
from pytest_fairness.probes.generation.swap_settings import PLACEBO
from pytest_fairness.probes.prompts import template
from pytest_fairness.records import Json

OTHER_COLUMNS = ("text", "trial", "prompt")
"""Column names of an answer file, in addition to the axes."""
NOT_WITH_SWAP = {
    "axes": "`swap` gives the probe its axis",
    "intersections": "a probe with `swap` has one axis",
    "messages": "terms are swapped only in `prompt` and in the prompts of a file",
    "turns": "terms are swapped only in `prompt` and in the prompts of a file",
    "responses": "recorded answers need `axes`, because a column of the file names the group of each answer",
}
"""Keys that a probe with `swap` cannot have, each with the reason."""


def diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for missing and contradictory keys in a probe file's plain content; see `ContentChecks`."""
    if data.keys().isdisjoint(("messages", "prompts")):
        cure = "the question, `prompts` with a file, `messages`, or `responses:` with recorded answers"
        yield from checks.missing_keys(data, {"prompt": cure})
    yield from structured.diagnostics(data)
    answer = checks.mapping(data.get("answer"))
    if "tool" in answer and "path" not in answer:
        message = "a tool call is not a text: add the `path` of one of its arguments, such as `path: $.message`"
        yield Diagnostic(("answer", "tool"), message, at_key=True)
    joined = answer.get("format", "text") == "text" and "tool" not in answer
    yield from conversations.diagnostics(data, sources=("prompt", "prompts", "messages"), labels="axes", texts=joined)
    if "swap" in data:
        yield from _swap_diagnostics(data, audits)
        return
    if "axes" not in data:
        cure = "the attributes by which groups differ, or `swap: gender` for prompts without placeholders"
        yield Diagnostic((), f"`axes` is missing: write {cure}")
    axes = checks.mapping(data.get("axes"))
    if not axes:
        return
    yield from _name_diagnostics(axes, audits, "axes")
    yield from _value_diagnostics(axes, "axes")
    yield from _intersection_diagnostics(data.get("intersections"), list(axes))
    yield from _prompt_diagnostics(data, list(axes))
    yield from checks.unknown_columns(data, [*axes, *OTHER_COLUMNS])
    # A column `prompt` of the file can be a stratum, unless `columns` already maps the name `prompt` to a column.
    columns = checks.mapping(checks.mapping(data.get("responses")).get("columns"))
    yield from checks.invalid_strata(data, {*axes, "text", "trial", *columns})
    sizes = [len(axis["marked"]) + 1 for _, axis in checks.mappings(axes) if isinstance(axis.get("marked"), list)]
    prompt = data.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) else 1
    count = checks.capped_product(sizes) * checks.most_trials(data, 15) * prompts
    yield from checks.too_many_prompts(data, count, "values, prompts and trials", "axes")


def _name_diagnostics(axes: Content, audits: Mapping[str, type[AuditSettings]], key: str) -> Iterator[Diagnostic]:
    """Yield diagnostics for axes with an unusable name: answers or an audit's items already have a label of this name.

    Args:
        axes: the axes by name.
        audits: the settings models of the probe's audits, by audit name.
        key: the key that holds the axes.
    """
    for name in axes:
        reasons = ["answers have a label of this name"] if name in OTHER_COLUMNS else []
        reasons += [
            f"items of the audit {audit} have this label"
            for audit, settings in audits.items()
            if name in settings.item_labels
        ]
        for reason in reasons:
            message = f"an axis cannot be called {quoted(name)}, because {reason}: rename the axis"
            yield Diagnostic((key, name), message, at_key=True)


def _value_diagnostics(axes: Content, key: str) -> Iterator[Diagnostic]:
    """Yield diagnostics for repeated values of the axes; see `_name_diagnostics` for the arguments."""
    for name, axis in checks.mappings(axes):
        unmarked = axis.get("unmarked")
        marked = [((key, name, "marked", i), value) for i, value in checks.items(axis.get("marked"))]
        others = []
        for location, value in marked:
            if isinstance(value, str) and isinstance(unmarked, str) and checks.folded(value) == checks.folded(unmarked):
                message = f"{quoted(value)} is already the unmarked value: remove it from `marked`"
                yield Diagnostic(location, message)
            else:
                others.append((location, value))
        yield from checks.repeats(others, "write each value of an axis once")


def _swap_diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for keys that contradict `swap`, for invalid groups, and for placeholders in prompts."""
    for key, reason in NOT_WITH_SWAP.items():
        if key in data:
            yield Diagnostic((key,), f"{reason}: remove `{key}` or `swap`", at_key=True)
    for name, variant in checks.mappings(data.get("variants")):
        if "prompt" in variant:
            message = "with `swap`, a variant can change only `system`: remove `prompt`"
            yield Diagnostic(("variants", name, "prompt"), message, at_key=True)
    swap = data["swap"]
    axes = {swap: None} if isinstance(swap, str) else checks.mapping(swap)
    yield from _name_diagnostics(axes, audits, "swap")
    yield from _value_diagnostics(axes, "swap")
    for name, settings in checks.mappings(axes):
        groups: list[tuple[Location, Json]] = [(("unmarked",), settings.get("unmarked"))]
        groups += [(("marked", place), group) for place, group in checks.items(settings.get("marked"))]
        for place, group in groups:
            if group == PLACEBO:
                message = f"{quoted(PLACEBO)} is the name of the placebo swap: rename the group"
                yield Diagnostic(("swap", name, *place), message)
    for location, text in _texts_at(("prompt",), data.get("prompt")):
        for name in axes:
            if (piece := f"{{{name}}}") in text:
                message = (
                    f"with `swap`, prompts have no placeholders: write a term of one group in place of {piece}, or "
                    "write `axes` in place of `swap`"
                )
                yield Diagnostic(location, message, piece=piece)


def _intersection_diagnostics(intersections: Json, axes: list[str]) -> Iterator[Diagnostic]:
    """Yield diagnostics for repeated intersections, and for unknown, repeated or missing axes in an intersection."""
    seen: set[frozenset[str]] = set()
    for i, crossed in checks.items(intersections):
        if not isinstance(crossed, list) or not all(isinstance(name, str) for name in crossed):
            continue
        location: Location = ("intersections", i)
        for j, name in enumerate(crossed):
            if name not in axes:
                message = f"{quoted(name)} is not an axis of this probe{suggestion(name, axes)}"
                yield Diagnostic((*location, j), message)
            elif name in crossed[:j]:
                message = f"{quoted(name)} is repeated: write each axis of an intersection once"
                yield Diagnostic((*location, j), message)
        names = frozenset(crossed)
        if len(crossed) < 2:
            message = "an intersection needs at least two axes: add an axis, or remove the intersection"
            yield Diagnostic(location, message)
        elif names in seen:
            yield Diagnostic(location, "this intersection is repeated: remove it")
        if len(names) > 1:
            seen.add(names)


def _prompt_diagnostics(data: Content, axes: list[str]) -> Iterator[Diagnostic]:
    """Yield diagnostics for the placeholders in all prompts, including the prompts of variants."""
    prompts = list(_texts_at(("prompt",), data.get("prompt")))
    around = list(conversations.templates(data))
    for location, text in around:
        yield from template.diagnostics(text, axes, location)
    # An axis that another message names need not be in the prompt.
    axes_elsewhere = {axis for _, text in around for axis in template.intended(text, axes)}
    # The prompts of a file are checked when they are read.
    written = [] if checks.is_recorded(data) or "prompts" in data else [*prompts, *around]
    unused = {*axes}.difference(*(template.intended(text, axes) for _, text in written)) if written else set()
    for axis in axes:
        if axis in unused:
            message = f"the axis {quoted(axis)} is used in no prompt: write {{{axis}}} where its values belong"
            yield Diagnostic(("axes", axis), message, at_key=True)
    of_variants = [
        text
        for name, variant in checks.mappings(data.get("variants"))
        for text in _texts_at(("variants", name, "prompt"), variant.get("prompt"))
    ]
    for location, text in [*prompts, *of_variants]:
        yield from template.diagnostics(text, axes, location)
        used = template.intended(text, axes)
        for axis in () if checks.is_recorded(data) else axes:
            if axis not in used | axes_elsewhere and not (axis in unused and location[0] == "prompt"):
                # The groups of the axis would get the same prompt, and would not differ for any model.
                message = f"this prompt does not use the axis {quoted(axis)}: write {{{axis}}} where its values belong"
                yield Diagnostic(location, message)


def _texts_at(location: Location, value: Json) -> Iterator[tuple[Location, str]]:
    """Yield the location and content of a text, or of each text in a list."""
    if isinstance(value, str):
        yield location, value
    yield from (((*location, i), text) for i, text in checks.items(value) if isinstance(text, str))
