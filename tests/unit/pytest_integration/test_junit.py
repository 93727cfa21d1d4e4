"""JUnit properties of an item."""

from pytest_fairness.pytest_integration import item_results
from pytest_fairness.records import VerdictName
from tests.support.results import REASON, result


def test_junit_properties_are_flat() -> None:
    assert item_results.junit_properties(result(VerdictName.OVER_LIMIT, limit=0.05), "openai:model") == [
        ("value", 0.0612345),
        ("interval_low", 0.048),
        ("interval_high", 0.0741),
        ("baseline", 0.0178),
        ("limit", 0.05),
        ("verdict", "over-limit"),
        ("finding", "Black vs White: 0.0612 bits (limit 0.05)"),
        ("reason", f"jsd[race=Black]: {REASON}"),
        ("target", "openai:model"),
    ]
    names = [name for name, _ in item_results.junit_properties(result(VerdictName.ERROR), None)]
    assert names == ["verdict", "finding", "reason"]
