"""What engines counted, put together over processes."""

from __future__ import annotations

from pytest_fairness.asking.request_counts import together


def tally(planned: float, reused: float, answered: float, failed: float = 0) -> dict[str, float]:
    return {"planned": planned, "reused": reused, "answered": answered, "failed": failed, "sent": answered + failed}


def test_processes_plan_the_same_and_ask_a_part_each() -> None:
    found = together({"one/a": tally(30, 10, 5), "two/b": tally(30, 10, 9, 1)})
    assert (found["planned"], found["reused"], found["answered"], found["settled"]) == (30, 10, 14, 25)
    assert (found["sent"], found["failed"]) == (15, 1)


def test_a_process_has_an_engine_for_each_target() -> None:
    found = together({"one/a": tally(30, 0, 30), "one/b": tally(20, 5, 2), "two/c": tally(30, 0, 0)})
    assert (found["planned"], found["reused"], found["settled"]) == (50, 5, 37)


def test_of_nobody_there_is_nothing() -> None:
    assert together({}) == dict.fromkeys(("planned", "reused", "settled", "sent", "answered", "failed"), 0)


def test_what_a_process_finds_recorded_may_have_been_sent_by_another() -> None:
    found = together({"one/a": tally(80, 0, 48), "two/b": tally(80, 32, 32)})
    assert (found["planned"], found["sent"], found["reused"], found["settled"]) == (80, 80, 0, 80)
