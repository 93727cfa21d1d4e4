"""Request counts of a run, summed over engines and processes."""

from __future__ import annotations

from pytest_fairness.asking.tracker import FAILURES, failure_counts, total_counts


def counts(planned: float, reused: float, answered: float, failed: float = 0) -> dict[str, float]:
    return {"planned": planned, "reused": reused, "answered": answered, "failed": failed, "sent": answered + failed}


def test_requests_planned_by_several_processes_count_once() -> None:
    total = total_counts({"one/a": counts(30, 10, 5), "two/b": counts(30, 10, 9, 1)})
    assert (total["planned"], total["reused"], total["answered"], total["settled"]) == (30, 10, 14, 25)
    assert (total["sent"], total["failed"]) == (15, 1)


def test_requests_of_the_engines_of_one_process_add_up() -> None:
    total = total_counts({"one/a": counts(30, 0, 30), "one/b": counts(20, 5, 2), "two/c": counts(30, 0, 0)})
    assert (total["planned"], total["reused"], total["settled"]) == (50, 5, 37)


def test_the_total_of_no_engines_is_zero() -> None:
    assert total_counts({}) == dict.fromkeys(("planned", "reused", "settled", "sent", "answered", "failed"), 0)


def test_an_answer_that_another_process_requested_is_not_reused() -> None:
    total = total_counts({"one/a": counts(80, 0, 48), "two/b": counts(80, 32, 32)})
    assert (total["planned"], total["sent"], total["reused"], total["settled"]) == (80, 80, 0, 80)


def test_failures_are_counted_by_message_the_most_frequent_first() -> None:
    engines = {"one/a": {FAILURES: {"busy": 1, "gone": 2}}, "two/b": {FAILURES: {"busy": 3}}, "three/c": {}}
    assert list(failure_counts(engines).items()) == [("busy", 4), ("gone", 2)]
