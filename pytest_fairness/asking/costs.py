"""Cost of answers, computed from token counts and the target's price."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.option_types import Price

BATCH_PRICE = 0.5
"""Price of an answer in a batch, as a share of the ordinary price: "50% cost discount compared to synchronous APIs"
(OpenAI, guide to the Batch API), "50% of the standard API prices" (Anthropic, guide to batch processing)."""


def cost_of(price: Price, prompt_tokens: float, completion_tokens: float) -> float:
    """Return the cost of the prompt and completion tokens, in the currency of the price."""
    return (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1_000_000


def with_cost(counts: Mapping[str, int], price: Price | None) -> dict[str, float]:
    """Return the request counts with the cost of the tokens as the entry `cost`.

    Without a price, the result has no entry `cost`, and its entry `uncounted` is 0.

    Args:
        counts: request counts of one engine; see `Engine.progress`.
        price: price of the target's tokens, if known.
    """
    if price is None:
        return {**counts, "uncounted": 0}
    return {**counts, "cost": cost_of(price, counts["prompt_tokens"], counts["completion_tokens"])}
