"""JUnit properties of an item."""

from pytest_fairness.pytest_integration.items import junit
from pytest_fairness.records import VerdictName
from tests.support.results import report, result


def test_junit_properties_are_flat() -> None:
    over = report(result(VerdictName.OVER_LIMIT, limit=0.05))["items"][0]
    assert junit.properties(over) == [
        ("value", 0.0612345),
        ("baseline", 0.0178),
        ("limit", 0.05),
        ("verdict", "over-limit"),
    ]
    assert junit.properties(report(result(VerdictName.ERROR))["items"][0]) == [("verdict", "error")]
