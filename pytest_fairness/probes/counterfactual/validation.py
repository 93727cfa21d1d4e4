"""Checks that the keys of a counterfactual probe fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_fairness.probes import checks, conversations, structured
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.checks import Content
from pytest_fairness.probes.counterfactual.flips import columns_of
from pytest_fairness.probes.diagnostics import Diagnostic


def diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for missing keys, and for keys, audits and columns that do not fit; see `ContentChecks`."""
    form = _form_of(data)
    yield from checks.unmet_needs(audits, _missing_inputs(form, has_truth="truth" in data))
    needed = {"records": "the records: a list of mappings, `{file: …}` or `{openml: …}`"}
    if "messages" not in data:
        needed["prompt"] = "the question about each record, `messages`, or `responses:` with recorded answers"
    yield from checks.missing_keys(data, needed)
    yield from structured.diagnostics(data)
    texts = form == "texts"
    yield from conversations.diagnostics(data, sources=("prompt", "messages"), labels="flip", texts=texts)
    if "truth" in data and form != "choices":
        message = f"`truth` needs choices as answers, but the answers of this probe are {form}: remove `truth`"
        yield Diagnostic(("truth",), message, at_key=True)
    attributes = columns_of(checks.mapping(data.get("flip")))
    yield from checks.unknown_columns(data, ["id", *attributes, "answer", "truth", "trial"])
    yield from checks.forbid_strata(data, "answers are compared only with answers about the same record")


def _missing_inputs(form: str, *, has_truth: bool) -> dict[str, str]:
    """Return the inputs that the probe lacks, such as `truth`, each with its remedy; see `AuditSettings.needs`."""
    other = "" if form == "choices" else f", but the answers of this probe are {form}"
    choices = f"choices as answers, `answer: {{choices: …}}`{other}"
    needed = {
        "choices": choices,
        "number": f"numbers as answers, `answer: {{number: {{min: …, max: …}}}}`{other}",
        "texts": f"texts as answers, `answer: {{text: true}}`{other}",
        "decisions": f"choices or numbers as answers{other}",
        "truth": choices if other else "the true answer about each record, `truth: {column: …, positive: …}`",
    }
    present = {"choices": {"choices", "decisions"}, "numbers": {"number", "decisions"}, "texts": {"texts"}}[form]
    if has_truth and form == "choices":
        present.add("truth")
    return {name: remedy for name, remedy in needed.items() if name not in present}


def _form_of(data: Content) -> str:
    """Return what the answers of a probe are: `choices`, `numbers` or `texts`."""
    answer = checks.mapping(data.get("answer"))
    return "numbers" if "number" in answer else "texts" if answer.get("text") is True else "choices"
