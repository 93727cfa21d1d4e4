"""Table of the audit methods; a new method needs one file, and one line here.

The table holds import paths, so that listing all names imports no audit module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

from pydantic import Field, create_model, model_validator

from pytest_fairness import extensions
from pytest_fairness.audits.base import AnyAudit, Audit
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.errors import FairnessError, joined, significant
from pytest_fairness.probes.diagnostics import Diagnostic, diagnostics_error
from pytest_fairness.probes.field_types import AuditSettings

AUDITS: dict[str, dict[str, str]] = {
    "counterfactual": {
        "flip_direction": "pytest_fairness.audits.flips:FlipDirection",
        "flip_rate": "pytest_fairness.audits.flips:FlipRate",
        "demographic_parity": "pytest_fairness.audits.record_gaps:DemographicParity",
        "equalized_odds": "pytest_fairness.audits.record_gaps:EqualizedOdds",
        "accuracy": "pytest_fairness.audits.record_gaps:Accuracy",
        "mean_gap": "pytest_fairness.audits.record_numbers:MeanGap",
        "tail_gap": "pytest_fairness.audits.record_numbers:TailGap",
        "rank_gap": "pytest_fairness.audits.record_numbers:RankGap",
        "score": "pytest_fairness.audits.scores:RecordScore",
        "impact_ratio": "pytest_fairness.audits.record_gaps:ImpactRatioAudit",
    },
    "generation": {
        "marked_words": "pytest_fairness.audits.words:MarkedWords",
        "svm": "pytest_fairness.audits.svm:Svm",
        "jsd": "pytest_fairness.audits.two_sample_audits:Jsd",
        "mmd": "pytest_fairness.audits.two_sample_audits:Mmd",
        "refusals": "pytest_fairness.audits.texts:Refusals",
        "lexicon": "pytest_fairness.audits.lexicon:Lexicon",
        "score": "pytest_fairness.audits.scores:TextScore",
    },
    "recommendation": {
        "snsr": "pytest_fairness.audits.list_similarity:SNSR",
        "snsv": "pytest_fairness.audits.list_similarity:SNSV",
        "pafs": "pytest_fairness.audits.list_similarity:PAFS",
        "uncertainty": "pytest_fairness.audits.list_quality:Uncertainty",
        "robustness": "pytest_fairness.audits.list_similarity:Robustness",
        "shortfall": "pytest_fairness.audits.list_quality:Shortfall",
        "quality": "pytest_fairness.audits.list_quality:Quality",
    },
    "stereotype": {
        "markers": "pytest_fairness.audits.stereotypes:MarkerRatio",
        "regard": "pytest_fairness.audits.stereotypes:Regard",
        "score": "pytest_fairness.audits.scores:CaseScore",
        "likelihood": "pytest_fairness.audits.likelihood:Likelihood",
    },
    "coreference": {
        "coreference": "pytest_fairness.audits.choices:Coreference",
        "accuracy_gap": "pytest_fairness.audits.choices:AccuracyGap",
    },
    "multiple_choice": {
        "accuracy": "pytest_fairness.audits.multiple_choice:Accuracy",
        "bias_ambiguous": "pytest_fairness.audits.multiple_choice:BiasAmbiguous",
        "bias_disambiguated": "pytest_fairness.audits.multiple_choice:BiasDisambiguated",
        "alignment_cost": "pytest_fairness.audits.multiple_choice:AlignmentCost",
    },
}
"""Import path `module:name` of each built-in audit (a class or an object), by kind of probe and name; `audit_classes`
adds extensions' audits."""

NEED_SETTINGS = {"lexicon", "score"}
"""Audits that need settings in the probe: lists of words, or the name of a scorer."""

REQUIRED = ("info", "rule", "kind", "version")
"""Class attributes that an audit must have."""

REPLACED = ("describe", "describe_change", "top_contributors", "contributions")
"""Methods of audits of earlier versions, which nothing calls any more."""


@cache
def audit_classes() -> dict[str, dict[str, str | type[AnyAudit]]]:
    """Return all audits by kind of probe and name: built-in audits as import paths, audits of extensions as classes.

    Raises:
        FairnessError: an extension cannot be imported, is not an audit, or has a name that is already used.
    """
    classes: dict[str, dict[str, str | type[AnyAudit]]] = {kind: dict(names) for kind, names in AUDITS.items()}
    built_in = [name for names in AUDITS.values() for name in names]
    for name, entry in extensions.declared("audits", built_in).items():
        audit = extensions.load(entry)
        if (
            not (isinstance(audit, type) and issubclass(audit, Audit))
            or not all(hasattr(audit, attribute) for attribute in REQUIRED)
            or audit.info.name != name
            or audit.kind not in classes
        ):
            raise FairnessError(
                f"{entry.group}: {name} = {entry.value} is not an audit. An audit is a subclass of "
                f"pytest_fairness.audits.base.Audit and has {', '.join(REQUIRED)}; its `info.name` must be {name!r}, "
                f"and its `kind` one of {', '.join(classes)}. Correct the class in its package."
            )
        if gone := [method for method in REPLACED if hasattr(audit, method)]:
            raise FairnessError(
                f"{entry.group}: {name} = {entry.value} defines {joined(gone)}, which nothing calls any more. Return "
                "the phrase, the contributors and the contributions from `explanation`, and those of a change from "
                "`explanation_of_change`, each as an `Explanation` of pytest_fairness.records."
            )
        classes[audit.kind][name] = audit
    return classes


@cache
def get(kind: str, name: str) -> AnyAudit:
    """Return the audit of this kind and name, always the same object; raise `KeyError` if there is none."""
    entry = audit_classes()[kind][name]
    if not isinstance(entry, str):
        return entry()
    module, _, attribute = entry.partition(":")
    found = getattr(import_module(module), attribute)
    audit: AnyAudit = found() if isinstance(found, type) else found
    return audit


def info_of(name: str) -> AuditInfo | None:
    """Return the description of the audit of this name, of whatever kind of probe; `None` if there is none."""
    kind = next((kind for kind, names in audit_classes().items() if name in names), None)
    return None if kind is None else get(kind, name).info


class SettingsModels(Mapping[str, type[AuditSettings]]):
    """Settings models of one kind of probe, by audit; reading an entry imports the audit's module."""

    def __init__(self, kind: str) -> None:
        self._kind, self._names = kind, audit_classes().get(kind, {})

    def __getitem__(self, name: str) -> type[AuditSettings]:
        return settings_model(self._kind, name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def settings_model(kind: str, name: str) -> type[AuditSettings]:
    """Return the settings model; its `limit` only accepts values in the audit's range of limits."""
    audit = get(kind, name)
    model = audit.settings_model
    lowest, highest = audit.info.limits
    limit = Field(
        default=None,
        description=model.model_fields["limit"].description,
        ge=lowest if math.isfinite(lowest) else None,
        le=highest if math.isfinite(highest) else None,
    )
    description = (
        model.__doc__
        if model is not AuditSettings
        else f"Settings of `{name}`: only the settings that every audit has."
    )
    return create_model(
        model.__name__,
        __base__=model,
        __doc__=description,
        __validators__={"_limit_is_decidable": cast("Any", model_validator(mode="after")(_undecidable_limit(audit)))},
        limit=(float | None, limit),
    )


def _undecidable_limit(audit: AnyAudit) -> Callable[[AuditSettings], AuditSettings]:
    def check(settings: AuditSettings) -> AuditSettings:
        limit, equal = settings.limit, audit.info.undecidable_limit
        if limit is None or limit != equal or settings.gate == "point":
            return settings
        tolerance = audit.tolerance_of(settings)
        worse, sign = ("smaller", -1) if audit.info.better is Direction.HIGHER else ("larger", 1)
        example = "" if not tolerance > 0 else f", such as {significant(equal + sign * tolerance)}"
        message = (
            f"{equal:g} means no difference at all, which no number of answers can show, because answers also differ "
            f"by chance. Write the worst value that you accept: a {worse} one{example}"
        )
        raise diagnostics_error([Diagnostic(("limit",), message)])

    return check
