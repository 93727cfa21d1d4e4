"""Table of the probe kinds; each kind is one entry of `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from pytest_fairness.answers.recorded.coreference import CoreferenceReader
from pytest_fairness.answers.recorded.counterfactual import CounterfactualReader
from pytest_fairness.answers.recorded.generation import GenerationReader
from pytest_fairness.answers.recorded.multiple_choice import MultipleChoiceReader
from pytest_fairness.answers.recorded.reader import Reader
from pytest_fairness.answers.recorded.recommendation import RecommendationReader
from pytest_fairness.answers.recorded.stereotype import StereotypeReader
from pytest_fairness.audits import answer_quality, registry
from pytest_fairness.audits.answer_quality import AnswerQuality
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.coreference import validation as coreference
from pytest_fairness.probes.coreference.model import CoreferenceProbe
from pytest_fairness.probes.counterfactual import validation as counterfactual
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.probes.exchange import Exchange, ListExchange, ProbeT, RecordExchange, TextExchange
from pytest_fairness.probes.generation import validation as generation
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.probes.loading.loader import ContentChecks, KindSchema
from pytest_fairness.probes.multiple_choice import validation as multiple_choice
from pytest_fairness.probes.multiple_choice.model import MultipleChoiceProbe
from pytest_fairness.probes.recommendation import validation as recommendation
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.probes.stereotype import validation as stereotype
from pytest_fairness.probes.stereotype.model import StereotypeProbe
from pytest_fairness.records import Answer


@dataclass(frozen=True)
class Kind(Generic[ProbeT]):
    """One kind of probe.

    Its audits are listed in `audits.registry`; its requests come from the method `prompts` of its model.

    Attributes:
        model: pydantic model that validates probe files of the kind.
        reader: reader of the answer file under `responses:`; `None` if the kind supports no answer files.
        checks: checks of several keys of a probe file together; `None` without such checks.
        exchange: rules by which the command `sample` exchanges recorded answers between groups; `None` if the command
            does not support the kind.
        quality: function that scores answers by the right answers in the probe; `None` if probes of the kind have no
            right answers.
    """

    model: type[ProbeT]
    reader: type[Reader[ProbeT]] | None = None
    checks: ContentChecks | None = None
    exchange: Exchange[ProbeT] | None = None
    quality: Callable[[ProbeT, Sequence[Answer]], AnswerQuality | None] | None = None


KINDS: dict[str, Kind[Any]] = {
    "generation": Kind(GenerationProbe, GenerationReader, generation.diagnostics, exchange=TextExchange()),
    "recommendation": Kind(
        RecommendationProbe,
        RecommendationReader,
        recommendation.diagnostics,
        exchange=ListExchange(),
        quality=answer_quality.of_lists,
    ),
    "coreference": Kind(
        CoreferenceProbe, CoreferenceReader, coreference.diagnostics, quality=answer_quality.of_resolutions
    ),
    "counterfactual": Kind(
        CounterfactualProbe,
        CounterfactualReader,
        counterfactual.diagnostics,
        exchange=RecordExchange(),
        quality=answer_quality.of_decisions,
    ),
    "stereotype": Kind(StereotypeProbe, StereotypeReader, stereotype.diagnostics),
    "multiple_choice": Kind(
        MultipleChoiceProbe, MultipleChoiceReader, multiple_choice.diagnostics, quality=answer_quality.of_choices
    ),
}
"""Kinds of probes, by the value of the key `kind` in probe files."""


def kind_of(probe: ProbeT) -> Kind[ProbeT]:
    """Return the kind of a probe."""
    return KINDS[probe.kind]


def schemas() -> dict[str, KindSchema]:
    """Return, for each kind, the pydantic models that validate its probes and the settings of its audits."""
    return {name: KindSchema(kind.model, registry.SettingsModels(name), kind.checks) for name, kind in KINDS.items()}


def recorded_answers(probe: Probe) -> list[Answer]:
    """Return the recorded answers of a probe, read from the file under `responses:`.

    Raises:
        ProbeError: the file cannot be read, lacks a column, has an invalid row, or lacks answers of the probe; or
            the probe's kind supports no recorded answers.
        ValueError: the probe has no `responses:`.
    """
    return reader(probe).answers()


def reader(probe: Probe) -> Reader[Any]:
    """Return the reader of the file under `responses:`.

    Raises:
        ProbeError: the file cannot be read, or lacks a column; or the probe's kind supports no recorded answers.
        ValueError: the probe has no `responses:`.
    """
    if probe.responses is None:
        raise ValueError(f"the probe {probe.name} has no `responses:`")
    reader_class = kind_of(probe).reader
    if reader_class is None:
        raise ProbeError(
            f"{probe.name}: probes of the kind {probe.kind!r} cannot read recorded answers. Remove the key `responses`."
        )
    return reader_class(probe, probe.responses)


def quality(probe: Probe, answers: Sequence[Answer]) -> AnswerQuality | None:
    """Return the quality of the usable answers: NDCG@k of lists, or accuracy of choices.

    The result is `None` if the probe does not state which items or choices are right.
    """
    score = kind_of(probe).quality
    return None if score is None else score(probe, answers)
