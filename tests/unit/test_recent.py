from __future__ import annotations

from pytest_fairness.resources import Recent


def test_a_result_is_computed_once_for_each_object() -> None:
    calls: list[list[int]] = []

    def count(key: list[int]) -> int:
        calls.append(key)
        return len(key)

    recent = Recent(count, 10)
    first, equal = [1, 2], [1, 2]
    assert [recent(first), recent(first), recent(equal)] == [2, 2, 2]
    assert [id(key) for key in calls] == [id(first), id(equal)]


def test_an_object_never_gets_the_result_of_an_object_that_is_gone() -> None:
    recent: Recent[list[int], int] = Recent(lambda key: key[0], 3)
    # Without a reference to the key, Python gives the next list the identity of the last one.
    assert [recent([number]) for number in range(20)] == list(range(20))


def test_no_more_results_are_kept_than_allowed() -> None:
    calls: list[int] = []
    keys = [[number] for number in range(4)]
    recent: Recent[list[int], None] = Recent(lambda key: calls.append(key[0]), 3)
    for key in [*keys[:3], keys[0], keys[3], keys[0]]:
        recent(key)
    assert calls == [0, 1, 2, 3, 0]
