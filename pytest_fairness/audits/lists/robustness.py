"""Do the lists survive a typo or a translation of the question, and does its fairness?

A perturbed question is treated like a second run on the same entities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.findings import Finding, subject_of
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.lists.entity_audit import EntityAudit
from pytest_fairness.audits.lists.matrix import Matrix
from pytest_fairness.audits.lists.neutral_similarity import (
    FAIRLLM,
    Pairs,
    SimilaritySettings,
    compared,
    likeness,
    mean_floor,
    to_neutral,
)
from pytest_fairness.audits.lists.normalization import NEUTRAL, Draw, Lists
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, PERMUTATIONS, UnitTable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answer, ItemResult, Json, Measurement
from pytest_fairness.stats import blocks, resampling
from pytest_fairness.stats.spreads import value_range
from pytest_fairness.stats.unit_statistics import Mean, UnitStatistic

Floats = NDArray[np.float64]
CLEAN, PERTURBED = "clean", "perturbed"
BOOTSTRAPS = 2000


class Robustness(EntityAudit[SimilaritySettings]):
    """Mean similarity of perturbed lists to clean ones, 0..1 in the normalised scale: higher is better.

    Neutral lists are compared; where the perturbation changes the attribute's words only, so that the neutral question
    is the same, conditioned ones of the same value are.
    """

    info = AuditInfo(
        name="robustness",
        title="Lists that survive another wording",
        question="Does a typo or a translation change the lists?",
        formula="mean over entities of similarity(list of the clean question, list of the perturbed one)",
        meaning="1 is no change; compare with the similarity of two neutral draws.",
        source=FAIRLLM,
        better=Direction.HIGHER,
        tolerance=0.10,
        value_range=(0, math.inf),
        limit_range=(0, 1),
    )
    version: ClassVar[int] = 3
    settings_model: ClassVar[type[AuditSettings]] = SimilaritySettings
    quantity: ClassVar[str] = "similarity"

    def items(self, probe: RecommendationProbe, settings: SimilaritySettings) -> list[AuditItem[SimilaritySettings]]:
        """One item a perturbation."""
        return [AuditItem(self.info.name, name, {"perturbation": name}, settings) for name in probe.perturbations]

    def uses(self, probe: RecommendationProbe, item: AuditItem[SimilaritySettings], labels: Mapping[str, str]) -> bool:
        """Everything clean, and everything of this perturbation."""
        return labels.get("perturbation", "") in ("", item.labels["perturbation"])

    def table(
        self, probe: RecommendationProbe, item: AuditItem[SimilaritySettings], answers: Sequence[Answer]
    ) -> Matrix:
        """One column: the similarity of perturbed lists to clean ones of the same question, by entity."""
        name = item.labels["perturbation"]
        neutral = getattr(probe.perturbations[name], "where", "text") != "attribute"
        most_clean = _clean_draws(probe, answers, name)
        parts: list[Matrix] = []
        floors: dict[str, float] = {}
        merged: list[dict[str, str]] = []
        for lists in Lists.parts(probe, answers):
            clean, perturbed = (
                [
                    draw
                    for draw in lists.draws
                    if draw.perturbation == which and (draw.attribute == NEUTRAL) == neutral and draw.trial < most
                ]
                for which, most in (("", most_clean), (name, math.inf))
            )
            groups = {CLEAN: clean, PERTURBED: perturbed}
            floor = [draw for draw in lists.of_group(NEUTRAL) if draw.trial < probe.neutral_trials]
            floors |= likeness(probe, item.settings, floor)
            merged += lists.merge_details()
            parts.append(
                Matrix.averaged(
                    (PERTURBED,),
                    compared(probe, item.settings, _same_questions(clean, perturbed)),
                    entities=(draw.entity for draw in (*clean, *perturbed)),
                    domains=lists.domains,
                    n={group: sum(draw.usable for draw in draws) for group, draws in groups.items()},
                    missing={group: sum(not draw.usable for draw in draws) for group, draws in groups.items()},
                )
            )
        return Matrix.joined(
            (PERTURBED,),
            (CLEAN, PERTURBED),
            parts,
            details={
                "measure": item.settings.similarity,
                "variant": item.settings.variant,
                "compared": NEUTRAL if neutral else "conditioned",
                "noise_floor": mean_floor(floors),
                "merged": merged,
            },
        )

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the mean similarity."""
        return Mean(higher_is_better=True)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """There is no hypothesis to test: a perturbed question may well be answered otherwise."""
        return None

    def finding(self, result: ItemResult) -> Finding:
        """Return that another wording gets other lists; see `Audit.finding`."""
        return Finding(
            f"Other words for the same question ({subject_of(result)}) get other lists.",
            "Typing errors, dialect and the language of a question say nothing about what is wanted: answer as if it "
            "were written without error.",
        )

    def measure(
        self, probe: RecommendationProbe, item: AuditItem[SimilaritySettings], answers: Sequence[Answer]
    ) -> Measurement:
        """The similarity, and the SNSR of each attribute with and without the perturbation."""
        measurement = super().measure(probe, item, answers)
        attributes = {
            attribute: found
            for attribute in probe.attributes
            if (found := self._sensitivity(probe, item, answers, attribute)) is not None
        }
        # What a file of lists was perturbed with is not known.
        edits = [] if probe.responses is not None else probe.edits(item.labels["perturbation"])
        return replace(measurement, details={**measurement.details, "attributes": attributes, "edits": edits})

    def _sensitivity(
        self, probe: RecommendationProbe, item: AuditItem[SimilaritySettings], answers: Sequence[Answer], attribute: str
    ) -> dict[str, Json] | None:
        """SNSR of clean and perturbed lists, over the entities that are complete in both; `None` where too few are."""
        values = tuple(value.label for value in probe.attributes[attribute].values)
        clean, perturbed = (
            to_neutral(
                probe,
                item.settings,
                [each for each in answers if _asks(each) in ((NEUTRAL, wording), (attribute, wording))],
                attribute,
                values,
                wording,
            )
            for wording in ("", item.labels["perturbation"])
        )
        whole = [dict(zip(matrix.units, matrix.rows, strict=True)) for matrix in (clean, perturbed)]
        shared = [
            entity
            for entity in clean.units
            if entity in whole[1] and not np.isnan([*whole[0][entity], *whole[1][entity]]).any()
        ]
        if len(values) < 2 or len(shared) < MINIMUM_UNITS:
            return None
        first, second = (np.array([rows[entity] for entity in shared]) for rows in reversed(whole))
        random = resampling.generator(f"{item.seed}/{attribute}")
        drawn = blocks.bootstrap_means(np.hstack([first, second]), BOOTSTRAPS, random)
        swapped = blocks.swapped_means(first, second, PERMUTATIONS, random)

        def change(now: Floats, then: Floats) -> Floats:
            return value_range(now) - value_range(then)

        observed = float(change(first.mean(axis=0), second.mean(axis=0)))
        ends = np.percentile(change(drawn[:, : len(values)], drawn[:, len(values) :]), [2.5, 97.5])
        return {
            "snsr_clean": float(value_range(second.mean(axis=0))),
            "snsr_perturbed": float(value_range(first.mean(axis=0))),
            "change": observed,
            "interval": [float(ends[0]), float(ends[1])],
            "p_value": resampling.p_value(change(swapped[0], swapped[1]), observed, exact=swapped[2]),
            "entities": len(shared),
        }

    def describe(self, measurement: Measurement) -> str:
        """The similarity beside that of two clean lists."""
        floor = measurement.details["noise_floor"]
        noise = "" if floor is None else f", neutral to neutral {floor['mean']:.2f}"
        return f"{measurement.details['measure']} of perturbed to clean lists {measurement.value:.3g}{noise}"


def _asks(answer: Answer) -> tuple[str, str]:
    """The attribute that is asked about, and the wording."""
    return answer.labels["attribute"], answer.labels.get("perturbation", "")


def _same_questions(clean: Sequence[Draw], perturbed: Sequence[Draw]) -> Pairs:
    """Each perturbed list with each clean one of the same question, by entity."""
    questions: dict[tuple[str, str, str], list[Draw]] = {}
    for draw in clean:
        if draw.usable:
            questions.setdefault((draw.entity, draw.attribute, draw.value), []).append(draw)
    pairs: Pairs = {}
    for draw in perturbed:
        if draw.usable and (same := questions.get((draw.entity, draw.attribute, draw.value))):
            pairs.setdefault((draw.entity, PERTURBED), []).extend((draw, other) for other in same)
    return pairs


def _clean_draws(probe: RecommendationProbe, answers: Sequence[Answer], perturbation: str) -> float:
    """How many clean draws count: what `uncertainty` asks besides changes nothing here."""
    if probe.responses is not None:
        return math.inf
    perturbed = (answer.trial + 1 for answer in answers if _asks(answer)[1] == perturbation)
    return float(max(probe.neutral_trials, max(perturbed, default=0)))
