"""Probes whose answers are free texts."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from pydantic import Field

from pytest_fairness.languages.language import Language
from pytest_fairness.probes.answer_reading import AnswerReading
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.keys.refusal_settings import RefusalSettings


class FreeTextProbe(Probe):
    """Probe whose answers are free texts; a judge model or a scorer can recognise the refusals among these texts."""

    refusal_settings: RefusalSettings = Field(
        default_factory=RefusalSettings,
        alias="refusals",
        description="How refusals are recognised: {by: judge} asks a judge model. Default: by the patterns of "
        "`language`.",
    )

    @cached_property
    def reading(self) -> AnswerReading:
        """Form of the answers (texts), and how refusals are recognised."""
        return replace(super().reading, refusals=self.refusal_settings)

    @cached_property
    def language(self) -> Language:
        """The language of the answers; without patterns of refusals if a judge model or scorer recognises refusals."""
        language = super().language
        if self.refusal_settings.by == "patterns":
            return language
        return replace(language, refusal_sources=(), refusals_missing=())
