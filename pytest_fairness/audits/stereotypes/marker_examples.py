"""Examples of answers with markers, for reports."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.audits.stereotypes.marker_matching import FoundMarkers
from pytest_fairness.records import Answer, Json

SHOWN_EXAMPLES = 4
"""Number of examples in the details."""
SHOWN_CHARACTERS = 300
"""Number of characters of an example."""


def marker_examples(answers: Sequence[tuple[Answer, FoundMarkers]], least: int) -> list[dict[str, Json]]:
    """Return at most `SHOWN_EXAMPLES` answers: for each case, the answer with the largest share of stereotype markers.

    The last example is the answer that has the smallest share among the answers of all cases.

    Args:
        answers: usable answers with their markers.
        least: smallest number of markers of an answer that is scored.
    """
    scored = [(ratio, answer, found) for answer, found in answers if (ratio := found.ratio(least)) is not None]
    scored.sort(key=lambda each: (-each[0], -each[2].count))
    first: dict[str, tuple[float, Answer, FoundMarkers]] = {}
    for each in scored:
        first.setdefault(each[1].labels["case"], each)
    chosen = list(first.values())[: SHOWN_EXAMPLES - 1]
    chosen += [each for each in scored[-1:] if all(each is not shown for shown in chosen)]
    return [
        {
            "group": answer.labels["case"],
            "text": str(answer.content)[:SHOWN_CHARACTERS],
            "ratio": ratio,
            "stereotype": list(found.stereotype),
            "anti_stereotype": list(found.anti_stereotype),
        }
        for ratio, answer, found in chosen
    ]
