"""The key `refusals` of a probe: how refusals among its answers are recognised."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.diagnostics import Diagnostic, raise_diagnostics
from pytest_fairness.probes.field_types import ScorerName

NEEDED_BY = {"votes": "judge", "scorer": "scorer", "threshold": "scorer"}
"""Keys of `refusals` that are allowed only with a certain value of `by`, each with this value."""


class RefusalSettings(ProbeModel):
    """Settings that say how refusals are recognised; all audits of the probe use the same classification."""

    by: Literal["patterns", "judge", "scorer"] = Field(
        default="patterns",
        description="How refusals are recognised. patterns: by the patterns of the probe's `language`. judge: by a "
        "judge model (ini fairness_judge), in any language. scorer: by the scores of the scorer named in `scorer`.",
    )
    votes: int = Field(
        default=1, ge=1, le=99, description="Number of votes of the judge model on each answer; must be odd."
    )
    scorer: ScorerName | None = Field(
        default=None,
        description="Name of the scorer: a built-in scorer, a scorer of an installed package, or a scorer that "
        "`fairness_scorers` in the ini file defines.",
    )
    threshold: float = Field(default=0.5, description="An answer with at least this score is a refusal.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        found = [
            Diagnostic((name,), f"`{name}` needs `by: {by}`: set `by` to `{by}`, or remove `{name}`", at_key=True)
            for name, by in NEEDED_BY.items()
            if name in self.model_fields_set and self.by != by
        ]
        if self.by == "scorer" and self.scorer is None:
            found.append(Diagnostic((), "`by: scorer` needs the name of a scorer: add `scorer`"))
        if self.votes % 2 == 0:
            found.append(
                Diagnostic(("votes",), "`votes` must be odd, so that two classes cannot get the same number of votes")
            )
        raise_diagnostics(found)
        return self
