"""Parts of the audit `score` for all kinds of probes: description, details, and answers without a score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from pytest_fairness.audits.anonymizer import MASK, Anonymizer
from pytest_fairness.audits.base import AuditItem, Preparation
from pytest_fairness.audits.effects import COHEN, EffectSize
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.scores.settings import LABEL, ScoreSettings
from pytest_fairness.audits.text.documents import text_of
from pytest_fairness.errors import BaselineStale
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Answers, Json
from pytest_fairness.stats import effect_sizes
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.mean_errors import mean_error

SHOWN_REASONS = 3
"""Number of different reasons for missing scores that a message names."""
SHOWN_PAIRS = 2
"""Number of pairs of answers that are shown as examples."""
LARGEST_SHRINKAGE = 10
"""Runs are not compared if the scores' standard deviation shrank by more than this factor since the baseline."""

Measured = Mapping[str, Floats]
"""Scores by group."""


INFO = AuditInfo(
    name="score",
    title="Unequal scores",
    question="Do answers about one group get higher scores than answers about another group?",
    formula="texts: mean score of the marked group − mean score of the unmarked group, within strata;  records: mean "
    "score if shown as A − mean score if shown as B;  cases: largest difference between two groups’ mean scores",
    meaning="In the unit of the scorer; 0 = equal mean scores. Answers without a score count as missing.",
    source="Welch 1947; Satterthwaite 1946",
    better=Direction.ZERO,
    tolerance=math.nan,
    value_range=(-math.inf, math.inf),
    limit_range=(0, math.inf),
    effect=EffectSize(
        name="Cohen’s d",
        formula="value / (standard deviation of the scores within groups)",
        of=lambda value, measurement: effect_sizes.ratio(value, measurement.details["sd"]),
        cutoffs=(0.2, 0.5, 0.8),
        source=COHEN,
    ),
)
"""Description of the audit. It is the same for all kinds of probes, as reports name audits by their names."""


def preparation(item: AuditItem[Probe, ScoreSettings], anonymizer: Anonymizer) -> Preparation:
    """Return the scorer with the texts that it reads.

    Args:
        item: the item.
        anonymizer: anonymizer that masks identity terms if the setting `mask` is true.
    """

    def texts(answers: Answers) -> list[str | None]:
        plain = (text_of(answer) if answer.usable else None for answer in answers)
        masked = item.settings.mask
        return [anonymizer.masked(each, MASK) if masked and each is not None else each for each in plain]

    return Preparation(item.labels[LABEL], texts, "score")


def score_of(answer: Answer) -> float:
    """Return the score of a usable answer that has been scored."""
    return float(answer.content["score"])


def by_group(answers: Answers, group_of: Callable[[Answer], str]) -> dict[str, Floats]:
    """Return the scores of the usable answers by group; `group_of` returns the group of an answer."""
    groups: dict[str, list[float]] = {}
    for answer in answers:
        if answer.usable:
            groups.setdefault(group_of(answer), []).append(score_of(answer))
    return {group: np.array(scores) for group, scores in groups.items()}


def unscored(answers: Answers) -> dict[str, Json]:
    """Return the number of answers that the scorer failed to score, and the main reasons; empty if there are none."""
    reasons = Counter(answer.error for answer in answers if answer.error is not None and answer.text is not None)
    if not reasons:
        return {}
    order = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    return {
        "unscored": {
            "answers": reasons.total(),
            "of": len(answers),
            "reasons": [[reason, reasons[reason]] for reason in order[:SHOWN_REASONS]],
        }
    }


def unscored_message(unscored: Mapping[str, Any]) -> str:
    """Return a sentence with the number of answers without a score, and the reasons."""
    reasons = "; ".join(f"{reason} ({count})" for reason, count in unscored["reasons"])
    return f"{unscored['answers']} of {unscored['of']} answers have no score: {reasons}"


def require_same_scale(name: str, current: Measured, baseline: Measured) -> None:
    """Raise `BaselineStale` if the current scores have a much smaller standard deviation; see `LARGEST_SHRINKAGE`.

    The current scores are then on a smaller scale, on which every difference would be within the tolerance.

    Args:
        name: name of the scorer.
        current, baseline: scores of the two runs, by group.
    """
    now, before = deviation(current.values()), deviation(baseline.values())
    if 0 < now * LARGEST_SHRINKAGE < before:
        raise BaselineStale([f"scale of {name} (standard deviation {before:.3g}, now {now:.3g})"])


def deviation(groups: Iterable[Floats]) -> float:
    """Return the standard deviation of the scores within groups; 0 if no group has two scores."""
    parts = list(groups)
    degrees = sum(len(scores) - 1 for scores in parts)
    squares = sum(float(((scores - scores.mean()) ** 2).sum()) for scores in parts)
    return math.sqrt(squares / degrees) if degrees > 0 else 0.0


def details(
    item: AuditItem[Probe, ScoreSettings],
    answers: Answers,
    groups: Measured,
    means: Mapping[str, float],
    pairing: Callable[[Answer], tuple[Hashable, str]],
) -> dict[str, Json]:
    """Return the details of `score`: each group's mean score, the spread of the scores, and example answers.

    Args:
        item: the item.
        answers: the item's answers, scored.
        groups: scores by group.
        means: mean score of each group; a stratum has the same weight in all groups.
        pairing: function that returns the question and the group of an answer; the answers of two groups to the same
            question are compared as examples.
    """
    everything = np.concatenate([*groups.values()])
    models = {answer.content["model"] for answer in answers if answer.usable}
    return {
        "unit": item.labels[LABEL],
        "scores": {name: _group_summary(scores, means[name]) for name, scores in groups.items()},
        "sd": deviation(groups.values()),
        "lowest": float(everything.min()),
        "highest": float(everything.max()),
        "model": ", ".join(sorted(models)),
        "furthest_answers": _furthest_answers(answers, means, pairing),
        **({"better": item.settings.better} if item.settings.better else {}),
        **unscored(answers),
    }


def _furthest_answers(
    answers: Answers, means: Mapping[str, float], pairing: Callable[[Answer], tuple[Hashable, str]]
) -> list[list[dict[str, Json]]]:
    """Return the `SHOWN_PAIRS` pairs of answers to the same question that show the gap between groups best.

    The first answer of a pair is for the group with the highest mean score, the second answer for the group with the
    lowest mean score. The pairs whose first score exceeds the second score most are returned.
    """
    high, low = sorted(furthest(means), key=lambda name: -means[name])
    cells: dict[Hashable, dict[str, Answer]] = {}
    for answer in answers:
        if answer.usable:
            question, group = pairing(answer)
            cells.setdefault((question, answer.trial), {}).setdefault(group, answer)
    pairs = [[cell[high], cell[low]] for cell in cells.values() if high in cell and low in cell]
    pairs.sort(key=lambda pair: (score_of(pair[1]) - score_of(pair[0]), sorted(pair[0].labels.items()), pair[0].trial))
    return [
        [
            {"group": group, "labels": dict(answer.labels), "trial": answer.trial, "score": score_of(answer)}
            for group, answer in zip((high, low), pair, strict=True)
        ]
        for pair in pairs[:SHOWN_PAIRS]
    ]


def _group_summary(scores: Floats, mean: float) -> dict[str, Json]:
    """Return the mean score of a group, its 95 % interval (`None` for 1 score) and the number of scored answers."""
    ends = None
    if len(scores) > 1:
        ends = list(normal.interval(mean, mean_error(scores), degrees_of_freedom=len(scores) - 1))
    return {"mean": mean, "interval": ends, "answers": len(scores)}


def means_of(details: Mapping[str, Json]) -> dict[str, float]:
    """Return the mean score of each group, from the details of a measurement."""
    return {name: part["mean"] for name, part in details["scores"].items()}


def furthest(means: Mapping[str, float]) -> tuple[str, str]:
    """Return the two groups whose means differ most, in the order of `means`."""
    ends = {max(means, key=means.__getitem__), min(means, key=means.__getitem__)}
    first, second = [name for name in means if name in ends] if len(ends) == 2 else list(means)[:2]
    return first, second
