"""Settings that every audit has; an audit with more settings derives a class from `AuditSettings`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class ProbeModel(BaseModel):
    """Base of all pydantic models of a probe file: unknown keys are errors, and objects are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AuditSettings(ProbeModel):
    """Settings that every audit has under a probe's key `audits`.

    Class attributes:
        needs: name of an input that the audit requires of the probe, such as `truth`; see `Probe.lacking`. Empty if the
            audit requires nothing.
        item_labels: names of labels that the audit adds to its items; no axis may have these names.
    """

    needs: ClassVar[str] = ""
    item_labels: ClassVar[tuple[str, ...]] = ()

    limit: float | None = Field(
        default=None, description="Worst acceptable value. Without it, the value is only compared with the baseline."
    )
    tolerance: float | None = Field(
        default=None, ge=0, description="Worst acceptable change from the baseline. Default: depends on the audit."
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
