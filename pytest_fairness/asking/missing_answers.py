"""Messages about missing answers; each says what the user can do."""

from __future__ import annotations

from pytest_fairness.errors import AnswersMissing
from pytest_fairness.plurals import counted

NAMED_PAUSE = 10.0
"""Messages mention a pause of more than this number of seconds. Only a target demands such a pause (`Retry-After`); the
engine's own pauses are not longer than this."""


def given_up(name: str, seconds: float, pause: float, last_error: str) -> str:
    """Return the message for a target that gave no answer within `seconds`, or demands a pause beyond this time.

    Args:
        name: the target's name.
        seconds: the time limit.
        pause: seconds for which the target still demands a pause; not positive without a pause.
        last_error: error of the last failed request; empty without a failed request.
    """
    last = f"Last error: {last_error}" if last_error else "Check that the target is running, and its address."
    limit = f"{seconds:g} seconds (ini fairness_give_up)"
    what = (
        f"demands a pause of {pause:.0f} seconds, which ends after the time limit of {limit}"
        if pause > NAMED_PAUSE
        else f"gave no answer for {limit}"
    )
    return f"given up: {name} {what}; earlier answers are recorded. {last}"


def unreachable(name: str, seconds: float, last_error: str) -> str:
    """Return the message for a target to which no connection was made within `seconds`."""
    return f"given up: no connection to {name} within {seconds:g} seconds; no request arrived. {last_error}"


def over_budget(max_requests: int, reusable: bool, last_error: str = "", *, shared: bool = False) -> AnswersMissing:
    """Return the error for a request that was not sent, or not sent again, because the run's budget is spent.

    Args:
        max_requests: the budget: maximum number of requests.
        reusable: whether a later run reuses the recorded answers.
        last_error: error of the request's last attempt; empty if the request was never sent.
        shared: whether all runs with the same `--fairness-run-name` share the budget.
    """
    cure = (
        "all runs with this --fairness-run-name share the budget, so raise it to continue"
        if shared
        else "the answers are recorded, so run again to continue (without --fairness-fresh)"
        if reusable
        else "raise the limit, or set the target's version with the ini fairness_target_version, so that the next run "
        "reuses the answers"
    )
    last = f" Last error: {last_error}" if last_error else ""
    budget = counted(max_requests, "request")
    what = "not sent again" if last_error else "not sent"
    return AnswersMissing(f"{what}: this run's budget of {budget} is spent (--fairness-max-requests); {cure}.{last}")
