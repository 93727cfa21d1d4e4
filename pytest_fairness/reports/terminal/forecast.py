"""Terminal output of `--fairness-dry-run`: the requests that a run would send, and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_fairness.plurals import counted
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import printable

Forecast = Mapping[str, Json]
"""JSON of `run.forecast.Forecast`, for one probe."""


def lines(
    forecasts: Sequence[Forecast], *, target: str, tests: int = 0, max_requests: int | None = None, replay: bool = False
) -> list[str]:
    """Return the forecast of a run: a block for each probe, and the total.

    Args:
        forecasts: one forecast per probe.
        target: name of the target.
        tests: number of selected Python tests that send requests.
        max_requests: value of `--fairness-max-requests`, if any.
        replay: whether the run is a replay, which sends no requests.
    """
    text = [line for forecast in forecasts for line in _block(forecast)]
    total = sum(forecast["to_send"] for forecast in forecasts)
    receiver = f" to {printable(target)}" if forecasts else ", because no probe is selected"
    most = "at most " if any(forecast["has_turns"] and forecast["to_send"] for forecast in forecasts) else ""
    text.append(f"total: {most}{counted(total, 'request')}{receiver}{_total_cost(forecasts)}; nothing was sent")
    if replay and total:
        text.append("--fairness-replay sends none of these requests: items that need them would end in an error")
    elif max_requests is not None and total > max_requests:
        text.append(
            f"--fairness-max-requests allows only {max_requests:,} of these requests: some items would lack answers"
        )
    more = ["retries"] if total else []
    if any(forecast["may_ask_more"] for forecast in forecasts):
        more.append("follow-up requests that depend on answers")
    if tests:
        more.append(f"requests of {counted(tests, 'Python test')}")
    if more:
        text.append(f"not counted: {', '.join(more)}")
    return text


def _block(forecast: Forecast) -> Iterator[str]:
    title = printable(f"{forecast['name']} ({forecast['file']})")
    if not forecast["requests"]:
        yield f"{title}: no requests, because its answers are in a file"
        return
    shared = f"{forecast['shared']:,} shared with the probes above, " if forecast["shared"] else ""
    most = "at most " if forecast["has_turns"] and forecast["to_send"] else ""
    yield (
        f"{title}: {most}{counted(forecast['requests'], 'request')}, {forecast['recorded']:,} recorded, {shared}"
        f"{forecast['to_send']:,} to send"
    )
    if forecast["equal_prompts"]:
        yield f"  {forecast['equal_prompts']}"
    if forecast["has_turns"]:
        yield "  including all turns of conversations; a conversation ends early if an answer is missing"
    if forecast["placebo"]:
        yield f"  including {forecast['placebo']:,} for the placebo swap (`placebo: false` under `swap` saves these)"
    if forecast["later"]:
        yield f"  up to {counted(forecast['later'], 'further request')} while verdicts are inconclusive"
    if forecast["judge_requests"]:
        yield f"  up to {counted(forecast['judge_requests'], 'request')} to the judge model"
    for name, texts in forecast["embedded"].items():
        sent = f"up to {counted(texts, 'text')}, and the texts of the baseline, are sent"
        yield f"  {sent} to {printable(name)} for embeddings"
    if forecast["unknown_target"]:
        yield (
            "  the fixture fairness_target sets the target, so the recorded answers are not known yet: fewer requests "
            "may be sent"
        )
    if forecast["prompt_tokens"] is None:
        return
    if forecast["known"]:
        prompt, completion = forecast["prompt_tokens"], forecast["completion_tokens"]
        basis = f"(estimated from {counted(forecast['known'], 'recorded answer')})"
        yield f"  about {prompt:,.0f} prompt and {completion:,.0f} completion tokens {basis}"
    else:
        answers = (
            "an unlimited number of completion tokens (no max_tokens)"
            if forecast["completion_tokens"] is None
            else f"at most {forecast['completion_tokens']:,.0f} completion tokens (max_tokens)"
        )
        yield f"  about {forecast['prompt_tokens']:,.0f} prompt tokens (4 characters each) and {answers}"
    if forecast["cost"] is not None:
        by_batch = "" if forecast["batch_cost"] is None else f", by batch about {money(forecast['batch_cost'])}"
        word = "about" if forecast["known"] else "at most about"
        yield f"  cost: {word} {money(forecast['cost'])} (fairness_prices){by_batch}"


def _total_cost(forecasts: Sequence[Forecast]) -> str:
    asking = [forecast for forecast in forecasts if forecast["to_send"]]
    costs = [forecast["cost"] for forecast in asking if forecast["cost"] is not None]
    if not costs or len(costs) < len(asking):
        return ""
    word = "about" if all(forecast["known"] for forecast in asking) else "at most about"
    batched = [forecast["batch_cost"] for forecast in asking if forecast["batch_cost"] is not None]
    by_batch = f", by batch about {money(sum(batched))}" if len(batched) == len(costs) else ""
    return f", cost {word} {money(sum(costs))}{by_batch}"


def money(cost: float) -> str:
    """Return an amount of money with two decimals; a small amount with two significant digits."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.2g}" if cost >= 0.0001 else f"{cost:.1e}"
