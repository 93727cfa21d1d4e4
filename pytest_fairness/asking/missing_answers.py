"""Why answers are missing, in words that say how to go on."""

from __future__ import annotations

from pytest_fairness.asking.rate_limit import LONGEST_PAUSE
from pytest_fairness.errors import AnswersMissing


def given_up(name: str, seconds: float, pause: float, last_fault: str) -> str:
    """The target has given no answer for so long, or asks for a pause that is longer."""
    last = f"Last fault: {last_fault}" if last_fault else "Is it up, and its address right?"
    # A pause longer than ours is the target's own.
    asks = f" and asks to be left alone for {pause:.0f} seconds more" if pause > LONGEST_PAUSE else ""
    return (
        f"given up: {name} gave no answer for {seconds:g} seconds (ini fairness_give_up){asks}; what came before is "
        f"recorded. {last}"
    )


def unreachable(name: str, seconds: float, last_fault: str) -> str:
    """Nobody has ever answered there."""
    return f"given up: {name} could not be reached once in {seconds:g} seconds; nothing was asked. {last_fault}"


def over_budget(most: int, reusable: bool, last_fault: str = "") -> AnswersMissing:
    """The run has sent what it may."""
    cure = (
        "what came is recorded, so run again to go on (without --fairness-fresh)"
        if reusable
        else "allow more, or name the target's version in the ini fairness_target_version, so that a next run goes on"
    )
    last = f" Last fault: {last_fault}" if last_fault else ""
    tries = "the one request" if most == 1 else f"all {most:,} requests"
    return AnswersMissing(
        f"not asked: {tries} that this run may send are sent (--fairness-max-requests); {cure}.{last}"
    )
