"""The judge model that reads free answers: who it is, and asking it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_fairness.answers import judge_votes as reading
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Answer, Judged, Judging
from pytest_fairness.run.answering.engines import Engines
from pytest_fairness.targets import open_target
from pytest_fairness.targets.base import Target


def open_judge(settings: RunSettings, addresses: Mapping[str, str] | None = None) -> Target | None:
    """The judge that the settings name, not asked anything yet; `None` where they name none.

    Args:
        settings: the run's.
        addresses: where models of this machine are served, if another process serves them; see `Run`.

    Raises:
        TargetError: nothing is known by that name.
    """
    judge = settings.judge
    if judge is None:
        return None
    # The version is the target's: what the judge said of equal answers holds for the next version too.
    settings = replace(settings, base_url=settings.judge_base_url or settings.base_url, target_version=None)
    try:
        return open_target(judge, settings, (addresses or {}).get(judge))
    except TargetError as error:
        raise TargetError(str(error).replace("--fairness-target", "fairness_judge")) from error


def judged(answers: Sequence[Answer], judging: Judging, judge: Target, engines: Engines) -> list[Answer]:
    """The answers as the judge reads them; blocks until it has answered.

    Raises:
        FairnessError: votes that could have been had are missing: not recorded, given up, or none came at all.
    """
    asked = reading.requests(judging, answers)
    votes = engines.ask(judge, [request for requests in asked for request in requests])
    errors = [vote for vote in votes if isinstance(vote, FairnessError)]
    for error in errors:
        if not isinstance(error, RequestFailed) or len(errors) == len(votes):
            raise AnswersMissing(f"the judge {judge.name} (fairness_judge) did not answer: {error}") from error
    named = iter([reading.vote(judging, None if isinstance(vote, FairnessError) else vote) for vote in votes])
    return [
        reading.decided(answer, Judged(judge.name, tuple(next(named) for _ in requests))) if requests else answer
        for answer, requests in zip(answers, asked, strict=True)
    ]
