"""Judge model, which classifies free-text answers: the target that serves it, and its votes on answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_fairness.answers import judge_votes
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, TargetError
from pytest_fairness.languages.language import Language
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Answer, Judged, Judging
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.targets import open_target
from pytest_fairness.targets.base import Target


def open_judge(settings: RunSettings, addresses: Mapping[str, str] | None = None) -> Target | None:
    """Return the judge model that the settings name, or `None`; no request is sent.

    Args:
        settings: settings of the run.
        addresses: addresses of the models that another process of the run serves on this machine, by target.

    Raises:
        TargetError: the judge model does not exist.
    """
    judge = settings.judge
    if judge is None:
        return None
    # `target_version` is not the version of the judge model: a new version of the target does not make votes obsolete.
    settings = replace(settings, base_url=settings.judge_base_url or settings.base_url, target_version=None)
    try:
        return open_target(judge, settings, (addresses or {}).get(judge))
    except TargetError as error:
        raise TargetError(str(error).replace("--fairness-target", "fairness_judge")) from error


def judged(
    answers: Sequence[Answer], judging: Judging, language: Language, judge: Target, engines: Engines
) -> list[Answer]:
    """Return the answers with the majority choice of the judge model's votes; request votes that are not recorded.

    Raises:
        FairnessError: no vote is available; see `votes_on`.
    """
    texts = [answer.text or "" for answer in answers if judge_votes.needs_votes(answer)]
    found = iter(votes_on(texts, judging, judge, engines))
    return [
        judge_votes.with_majority_choice(answer, next(found), language) if judge_votes.needs_votes(answer) else answer
        for answer in answers
    ]


def votes_on(texts: Sequence[str], judging: Judging, judge: Target, engines: Engines) -> list[Judged]:
    """Return the judge model's votes on each text; the vote of a failed request is `None`.

    Raises:
        FairnessError: no vote is available, because no response is recorded for a replay, the run gave up on the judge
            model, or every request failed.
    """
    asked = judge_votes.requests(judging, texts)
    responses = engines.ask(judge, [request for requests in asked for request in requests])
    errors = [response for response in responses if isinstance(response, FairnessError)]
    for error in errors:
        if not isinstance(error, RequestFailed) or len(errors) == len(responses):
            raise AnswersMissing(f"the judge model {judge.name} (fairness_judge) did not answer: {error}") from error
    votes = iter([judge_votes.vote(judging, None if isinstance(each, FairnessError) else each) for each in responses])
    return [Judged(judge.name, tuple(next(votes) for _ in requests)) for requests in asked]
