"""The settings that every audit takes; an audit adds its own by deriving from `AuditSettings`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class ProbeModel(BaseModel):
    """Base of all models of a probe file: unknown keys are errors, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AuditSettings(ProbeModel):
    """Settings of every audit under a probe's `audits:`.

    Class attributes:
        needs: what a probe must have for the audit, as its kind names it in `Probe.lacking`; empty for nothing.
        item_labels: labels that the audit gives its items besides the probe's; no axis may have these names.
    """

    needs: ClassVar[str] = ""
    item_labels: ClassVar[tuple[str, ...]] = ()

    limit: float | None = Field(
        default=None, description="Worst acceptable value. Without it only the baseline counts."
    )
    tolerance: float | None = Field(
        default=None, ge=0, description="Worst acceptable change from the baseline. Without it the audit's own default."
    )
    gate: Literal["significant", "bound", "strict", "point"] = Field(
        default="significant",
        description="significant: fail on a change beyond the tolerance that is significant, pass where twice the "
        "tolerance is excluded. bound: fail only where the change is shown to exceed the tolerance. strict: pass only "
        "where a change by more than the tolerance, or a value over the limit, is excluded. point: compare bare "
        "estimates.",
    )
    skip: str | None = Field(
        default=None, min_length=1, description="Do not run this audit, for the reason given here."
    )
    xfail: str | None = Field(
        default=None, min_length=1, description="A known failure, accepted for now, for the reason given here."
    )
