"""Settings of the audit `score`."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from pytest_fairness.probes.audit_settings import AuditSettings, ProbeModel
from pytest_fairness.probes.diagnostics import Diagnostic, raise_diagnostics
from pytest_fairness.probes.field_types import ScorerName

Better = Literal["higher", "lower"]
LABEL = "scorer"
"""Name of the item's label that holds the name of the scorer."""


class OneScorer(ProbeModel):
    """Settings of one of several scorers of `score`; a setting that is missing here is taken from `score`."""

    better: Better | None = Field(default=None, description="Whether higher or lower scores are better for a group.")
    mask: bool | None = Field(
        default=None, description="Whether the scorer reads the answers with XYZ in place of identity terms."
    )
    limit: float | None = Field(default=None, ge=0, description="Worst acceptable difference between groups.")
    tolerance: float | None = Field(default=None, ge=0, description="Worst acceptable change from the baseline.")
    gate: Literal["significant", "bound", "strict", "point"] | None = Field(
        default=None, description="Decision rule, as for every audit."
    )


class ScoreSettings(AuditSettings):
    """Settings of `score`: one scorer or several scorers, and what their scores mean."""

    item_labels: ClassVar[tuple[str, ...]] = (LABEL,)

    scorer: ScorerName | None = Field(
        default=None,
        description="Name of the scorer: words, sentences, flesch, sentiment, number, a scorer that the ini file names "
        "in `fairness_scorers`, or a scorer of an installed package.",
    )
    scorers: dict[ScorerName, OneScorer] | None = Field(
        default=None, min_length=1, description="In place of `scorer`: several scorers, each with its own settings."
    )
    better: Better | None = Field(
        default=None,
        description="Whether higher or lower scores are better for a group. Used in reports only; the audit counts a "
        "difference in either direction.",
    )
    mask: bool = Field(
        default=False,
        description="Whether the scorer reads the answers with XYZ in place of identity terms and names of groups. "
        "Some models give different scores to these words themselves.",
    )
    tolerance: float | None = Field(
        default=None,
        ge=0,
        description="Worst acceptable change from the baseline, in the unit of the score. Required, because the scales "
        "of scores differ.",
    )

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        diagnostics = []
        if (self.scorer is None) == (self.scorers is None):
            diagnostics.append(Diagnostic((), "set either `scorer` or `scorers`, not both"))
        for name, settings in self.by_scorer().items():
            if settings.tolerance is None:
                message = (
                    "`tolerance` is missing: give the largest acceptable change of the difference between groups, in "
                    "the unit of the score"
                )
                diagnostics.append(Diagnostic(() if self.scorers is None else ("scorers", name), message))
        raise_diagnostics(diagnostics)
        return self

    def by_scorer(self) -> dict[str, ScoreSettings]:
        """Return the settings of each scorer, by the scorer's name."""
        if self.scorers is None:
            return {} if self.scorer is None else {self.scorer: self}
        return {
            name: self.model_copy(
                update={**own.model_dump(exclude_none=True), "scorer": name, "scorers": None},
            )
            for name, own in self.scorers.items()
        }
