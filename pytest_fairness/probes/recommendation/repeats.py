"""Settings of audits that compare several lists for the same prompt."""

from __future__ import annotations

from pydantic import Field

from pytest_fairness.probes.audit_settings import AuditSettings


class RepeatSettings(AuditSettings):
    """Settings of an audit that compares repeated lists."""

    repeats: int = Field(default=10, ge=2, le=1000, description="Number of answers to each repeated prompt.")
    attributes: tuple[str, ...] = Field(
        default=(),
        description="Attributes whose prompts are repeated in addition to the neutral prompts; the audit then compares "
        "the values of each attribute.",
    )
