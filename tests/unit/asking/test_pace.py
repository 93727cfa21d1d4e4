"""The pace: arithmetic alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.asking.rate_limit import FIRST_PAUSE, LONGEST_PAUSE, Pace


def overloaded(pace: Pace, now: float, wait: float | None = None, sent_at: float | None = None) -> Pace:
    return pace.overloaded(16, sent_at=now if sent_at is None else sent_at, now=now, wait=wait)


def test_half_as_many_after_an_overload_and_one_more_for_each_round_of_answers() -> None:
    pace = overloaded(Pace(), 100.0)
    assert (pace.allowed, pace.strikes, pace.resume_at) == (8.0, 1, 100.0 + FIRST_PAUSE)
    for _ in range(8):
        pace = pace.answered(16)
    assert 8.9 < pace.allowed < 9.1
    assert pace.strikes == 0
    for _ in range(200):
        pace = pace.answered(16)
    assert pace == Pace(resume_at=pace.resume_at, reduced_at=pace.reduced_at)


def test_one_batch_that_fails_together_counts_once() -> None:
    pace = overloaded(Pace(), 100.0)
    assert overloaded(pace, 100.1, sent_at=99.9) == pace
    assert overloaded(pace, 100.1, sent_at=100.0).allowed == 4.0


def test_the_servers_own_word_goes_before_our_pauses() -> None:
    pace = overloaded(Pace(), 100.0, wait=7.0)
    assert pace.resume_at == 107.0
    later = overloaded(pace, 100.1, wait=20.0, sent_at=99.0)
    assert later.resume_at == 120.1
    assert overloaded(later, 101.0, wait=0.0).resume_at == 120.1


@given(st.lists(st.sampled_from(["answer", "overload"]), max_size=300))
def test_it_stays_within_its_limits(events: list[str]) -> None:
    pace, now = Pace(), 0.0
    for event in events:
        now += 1.0
        pace = pace.answered(16) if event == "answer" else overloaded(pace, now)
        assert pace.allowed >= 1.0
        assert pace.resume_at <= now + LONGEST_PAUSE
    if events and events[-1] == "overload":
        assert pace.resume_at > now
