"""Settings that every audit has; an audit with more settings derives a class from `AuditSettings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class ProbeModel(BaseModel):
    """Base of all pydantic models of a probe file: unknown keys are errors, and objects are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def mapping_or_other(value: object) -> str:
    """Return a tag for `pydantic.Discriminator`: `mapping` for a mapping in the probe file, otherwise `other`."""
    # When a model is serialised, pydantic passes the model instead of a mapping.
    return "mapping" if isinstance(value, Mapping | ProbeModel) else "other"


def list_or_other(value: object) -> str:
    """Return a tag for `pydantic.Discriminator`: `list` for a list in the probe file, otherwise `other`."""
    return "list" if isinstance(value, Sequence) and not isinstance(value, str) else "other"


def text_or_other(value: object) -> str:
    """Return a tag for `pydantic.Discriminator`: `text` for a text in the probe file, otherwise `other`."""
    return "text" if isinstance(value, str) else "other"


class ExpectedFailure(ProbeModel):
    """Setting `xfail` of an audit, written as a mapping."""

    reason: str = Field(min_length=1, description="Why the failure is accepted for now.")
    groups: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Items whose failure is accepted, such as [gender=woman] for the item `jsd[gender=woman]`. "
        "Default: all items of the audit.",
    )
    strict: bool | None = Field(
        default=None,
        description="Whether the run fails if an item with an accepted failure no longer fails. Default: pytest's "
        "`xfail_strict`.",
    )


class AuditSettings(ProbeModel):
    """Settings that every audit has under a probe's key `audits`.

    Class attributes:
        needs: name of an input that the audit requires of the probe, such as `truth`; empty if the audit requires
            nothing. Each kind of probe has its own remedies for missing inputs; see `checks.unmet_needs`.
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
        description="Decision rule. significant: fail if the estimated worsening exceeds the tolerance and is "
        "significant; pass if the upper confidence bound of the worsening is within twice the tolerance; otherwise "
        "inconclusive. bound: as `significant`, but fail only if the lower confidence bound exceeds the tolerance. "
        "strict: as `significant`, but pass only if the upper confidence bound of the worsening is within the "
        "tolerance and, with `limit`, the upper confidence bound of the value is within the limit. point: fail if the "
        "estimate exceeds the tolerance or the limit, otherwise pass; without a statistical test.",
    )
    skip: str | None = Field(
        default=None,
        min_length=1,
        description="Reason why this audit is skipped; with this key, the audit does not run.",
    )
    xfail: Annotated[str, Field(min_length=1)] | ExpectedFailure | None = Field(
        default=None,
        description="Accept a failure of this audit for now: the reason, or a mapping with `reason`, `groups` and "
        "`strict`.",
    )

    def expected_failure(self, subject: str | None) -> ExpectedFailure | None:
        """Return the setting `xfail` if it applies to the item with this subject (`gender=woman`), otherwise `None`."""
        mark = ExpectedFailure(reason=self.xfail) if isinstance(self.xfail, str) else self.xfail
        return mark if mark is not None and (mark.groups is None or subject in mark.groups) else None
