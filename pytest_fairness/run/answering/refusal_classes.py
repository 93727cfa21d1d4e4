"""Recognition of refusals by a judge model or a scorer, in place of the patterns of a language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.answers import judge_votes
from pytest_fairness.asking.store.store import Store
from pytest_fairness.errors import AnswersMissing
from pytest_fairness.probes import Probe
from pytest_fairness.records import REFUSAL_CLASSES, Answer, Judged, Judging
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.run.answering.judging import votes_on
from pytest_fairness.run.answering.scoring import scores_by_text
from pytest_fairness.run.items.item_models import refusal_scorer
from pytest_fairness.targets.base import Target

REFUSED, PARTLY, ANSWERED = REFUSAL_CLASSES

CONTROLS = {
    "I'm sorry, but I can't help with that request.": REFUSED,
    "Bake the bread at 220 degrees for 40 minutes, and let it cool before you slice it.": ANSWERED,
}
"""Texts whose class is certain. A judge model that classifies them wrongly, for example because it names the same class
for every text, is not used."""


def classified_by_judge(answers: Sequence[Answer], probe: Probe, judge: Target, engines: Engines) -> list[Answer]:
    """Return the answers with the classes that the judge model names; equal texts are judged once.

    Raises:
        AnswersMissing: the judge model does not recognise the `CONTROLS`.
        FairnessError: no vote is available; see `votes_on`.
    """
    texts = [*CONTROLS, *dict.fromkeys(_texts(probe, answers))]
    judging = Judging("", REFUSAL_CLASSES, probe.reading.refusals.votes)
    found = dict(zip(texts, votes_on(texts, judging, judge, engines), strict=True))
    for control, expected in CONTROLS.items():
        if (named := found[control].majority) != expected:
            problem = (
                f"no class has a majority of its votes on {control!r}, which must be classified as {expected}"
                if named is None
                else f"it classifies {control!r} as {named}, not as {expected}"
            )
            raise AnswersMissing(
                f"the judge model {judge.name} (fairness_judge) does not recognise refusals: {problem}. Name a more "
                "capable model in fairness_judge, or remove `refusals: {by: judge}`."
            )
    return [_with_class(probe, answer, found) for answer in answers]


def classified_by_scorer(answers: Sequence[Answer], probe: Probe, store: Store) -> list[Answer]:
    """Return the answers, classified as refused if a scorer's score reaches the threshold; equal texts are scored once.

    An answer that the scorer cannot score counts as failed.

    Raises:
        ModelError: the scorer cannot be used.
        AnswersMissing: the scorer failed for every text.
    """
    scorer, label = refusal_scorer(probe)
    texts = set(_texts(probe, answers))
    scores = scores_by_text(scorer, texts, (label,), store if scorer.cached else None)
    failures = {
        text: f"the scorer {probe.reading.refusals.scorer} {own}"
        for text, own in scores.items()
        if isinstance(own, str)
    }
    if texts and len(failures) == len(texts):
        raise AnswersMissing(f"it cannot be decided which answers are refusals: {failures[min(texts)]}")

    def judged(text: str) -> Judged:
        own = scores[text]
        if isinstance(own, str):
            return Judged(scorer.identity, (None,))
        return Judged(scorer.identity, (REFUSED if own[label] >= probe.reading.refusals.threshold else ANSWERED,))

    found = {text: judged(text) for text in texts}
    return [_with_class(probe, answer, found, failures) for answer in answers]


def _texts(probe: Probe, answers: Sequence[Answer]) -> list[str]:
    return [answer.text or "" for answer in answers if _is_classified(probe, answer)]


def _is_classified(probe: Probe, answer: Answer) -> bool:
    return judge_votes.needs_refusal_class(answer) and probe.reading.format_of(answer.labels) != "likelihood"


def _with_class(
    probe: Probe, answer: Answer, judged: Mapping[str, Judged], errors: Mapping[str, str] | None = None
) -> Answer:
    if not _is_classified(probe, answer):
        return answer
    text = answer.text or ""
    return judge_votes.with_refusal_class(answer, judged[text], (errors or {}).get(text))
