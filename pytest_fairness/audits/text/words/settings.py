"""Settings of the audit `marked_words`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_fairness.probes.audit_settings import AuditSettings


class MarkedWordsSettings(AuditSettings):
    """Settings of `marked_words`: the prior of the log-odds, and the smallest growth since the baseline that counts."""

    prior: Literal["pooled", "pair", "mass", "uniform"] = Field(
        default="pooled",
        description="Dirichlet prior. pooled: word counts of all groups of the probe. pair: counts of the compared "
        "groups. mass: counts of the compared groups, scaled to `prior_mass`. uniform: equal counts.",
    )
    prior_mass: float = Field(
        default=500.0,
        gt=0,
        description="Sum of the prior's counts for `mass` and `uniform`; larger values move log-odds closer to 0.",
    )
    min_share: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="A word counts as grown if the gap between the groups' shares of texts with the word grew by at "
        "least this much since the baseline.",
    )
