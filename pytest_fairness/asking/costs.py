"""What answers cost."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.option_types import Price


def cost_of(price: Price, prompt_tokens: float, completion_tokens: float) -> float:
    """In the currency of the price."""
    return (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1_000_000


def with_cost(counts: Mapping[str, int], price: Price | None) -> dict[str, float]:
    """Counts together with their `cost`, if the target has a price; `uncounted` answers are those nobody priced.

    Args:
        counts: `prompt_tokens`, `completion_tokens` and `uncounted` matter.
        price: the target's.
    """
    if price is None:
        return {**counts, "uncounted": 0}
    return {**counts, "cost": cost_of(price, counts["prompt_tokens"], counts["completion_tokens"])}
