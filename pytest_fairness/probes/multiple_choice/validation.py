"""Checks that the keys of a multiple-choice probe fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_fairness.probes import checks, conversations
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.checks import Content
from pytest_fairness.probes.diagnostics import Diagnostic, Location
from pytest_fairness.probes.prompts import template

PLACEHOLDERS = {"context": "the story", "question": "the question", "options": "the options, each with its letter"}
"""Placeholders of a prompt, each with a phrase for the text that it stands for."""
COLUMNS = ("question", "category", "example_id", "text", "trial")
"""Column names of an answer file."""


def diagnostics(data: Content, _audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for prompts, columns and strata that do not fit this kind of probe; see `ContentChecks`."""
    yield from conversations.diagnostics(data, sources=("prompt", "messages"), labels="", texts=False)
    around = list(conversations.templates(data))
    for location, text in around:
        yield from template.diagnostics(text, PLACEHOLDERS, location)
    elsewhere = {name for _, text in around for name in template.intended(text, PLACEHOLDERS)}
    if "messages" in data and (unused := PLACEHOLDERS.keys() - elsewhere):
        names = " and ".join(f"{{{name}}}" for name in PLACEHOLDERS if name in unused)
        yield Diagnostic(
            ("messages",), f"no message of this conversation uses {names}: add {names} to a message", at_key=True
        )
    variants = [
        (("variants", name, "prompt"), variant.get("prompt")) for name, variant in checks.mappings(data.get("variants"))
    ]
    written: list[tuple[Location, object]] = [(("prompt",), data.get("prompt")), *variants]
    for location, prompt in written:
        if isinstance(prompt, str):
            yield from _prompt_diagnostics(prompt, location, elsewhere)
    yield from checks.unknown_columns(data, COLUMNS)
    yield from checks.forbid_strata(data, "answers are compared only with answers to the same question")


def _prompt_diagnostics(prompt: str, location: Location, elsewhere: set[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each invalid placeholder, and for each placeholder that the probe does not use.

    `elsewhere` holds the placeholders that are used in the messages and turns of the probe's conversation.
    """
    yield from template.diagnostics(prompt, PLACEHOLDERS, location)
    used = template.intended(prompt, PLACEHOLDERS)
    for name, content in PLACEHOLDERS.items():
        if name not in used | elsewhere:
            yield Diagnostic(location, f"this prompt does not use {{{name}}}: write it where {content} belongs")
