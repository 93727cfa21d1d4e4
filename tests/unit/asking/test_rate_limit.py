"""Arithmetic of the rate limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.asking.limits import DEFAULT_TIMING, RateLimit


def after_overload(
    limit: RateLimit, now: float, retry_after: float | None = None, sent_at: float | None = None
) -> RateLimit:
    return limit.after_overload(16, sent_at=now if sent_at is None else sent_at, now=now, retry_after=retry_after)


def test_an_overload_halves_the_limit_and_each_round_of_answers_adds_one() -> None:
    limit = after_overload(RateLimit(), 100.0)
    assert (limit.allowed, limit.overloads) == (8.0, 1)
    assert limit.resume_at == 100.0 + DEFAULT_TIMING.first_rate_limit_pause
    for _ in range(8):
        limit = limit.after_answer(16)
    assert 8.9 < limit.allowed < 9.1
    assert limit.overloads == 0
    for _ in range(200):
        limit = limit.after_answer(16)
    assert limit == RateLimit(resume_at=limit.resume_at, reduced_at=limit.reduced_at)


def test_a_batch_of_rejected_requests_reduces_the_limit_once() -> None:
    limit = after_overload(RateLimit(), 100.0)
    assert after_overload(limit, 100.1, sent_at=99.9) == limit
    assert after_overload(limit, 100.1, sent_at=100.0).allowed == 4.0


def test_retry_after_replaces_the_default_pause() -> None:
    limit = after_overload(RateLimit(), 100.0, retry_after=7.0)
    assert limit.resume_at == 107.0
    later = after_overload(limit, 100.1, retry_after=20.0, sent_at=99.0)
    assert later.resume_at == 120.1
    assert after_overload(later, 101.0, retry_after=0.0).resume_at == 120.1


@given(st.lists(st.sampled_from(["answer", "overload"]), max_size=300))
def test_limit_and_pause_stay_within_their_bounds(events: list[str]) -> None:
    limit, now = RateLimit(), 0.0
    for event in events:
        now += 1.0
        limit = limit.after_answer(16) if event == "answer" else after_overload(limit, now)
        assert limit.allowed >= 1.0
        assert limit.resume_at <= now + DEFAULT_TIMING.longest_rate_limit_pause
    if events and events[-1] == "overload":
        assert limit.resume_at > now
