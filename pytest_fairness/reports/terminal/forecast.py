"""What a run would send, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import counted, printable

Forecast = Mapping[str, Json]
"""One probe's, as `run.forecast.Forecast.to_json` gives it."""


def lines(
    forecasts: Sequence[Forecast],
    *,
    target: str,
    tests: int = 0,
    max_requests: int | None = None,
    replay: bool = False,
) -> list[str]:
    """The forecast of a run, a block a probe and the sum.

    Args:
        forecasts: a probe each.
        target: who would be asked.
        tests: how many selected Python tests ask on their own.
        max_requests: the run's limit, if any.
        replay: whether the run sends nothing whatever is missing.
    """
    text = [line for forecast in forecasts for line in _block(forecast)]
    total = sum(forecast["to_send"] for forecast in forecasts)
    asked = f" to {printable(target)}" if forecasts else ", as there is no probe among what is selected"
    text.append(f"in all: {counted(total, 'request')}{asked}{_cost_of_all(forecasts)}; nothing was sent")
    if replay and total:
        text.append("--fairness-replay sends none of them: items that need them would be errors")
    elif max_requests is not None and total > max_requests:
        text.append(f"more than --fairness-max-requests allows ({max_requests:,}): items would lack answers")
    more = ["requests that are tried again"] if total else []
    if any(forecast["may_ask_more"] for forecast in forecasts):
        more.append("questions that depend on answers")
    if tests:
        more.append(f"whatever {counted(tests, 'Python test')} ask{'s' if tests == 1 else ''}")
    if more:
        text.append(f"not counted: {', '.join(more)}")
    return text


def _block(forecast: Forecast) -> Iterator[str]:
    title = printable(f"{forecast['name']} ({forecast['file']})")
    if not forecast["requests"]:
        yield f"{title}: nothing to ask, its answers are in a file"
        return
    shared = f"{forecast['shared']:,} asked by probes above, " if forecast["shared"] else ""
    yield (
        f"{title}: {counted(forecast['requests'], 'request')}, {forecast['recorded']:,} recorded, {shared}"
        f"{forecast['to_send']:,} to send"
    )
    if forecast["later"]:
        yield f"  up to {counted(forecast['later'], 'further request')} while verdicts are open"
    if forecast["judge_requests"]:
        yield f"  up to {counted(forecast['judge_requests'], 'request')} to the judge model besides"
    for name, texts in forecast["embedded"].items():
        yield f"  up to {counted(texts, 'text')} to {printable(name)} for embeddings, and those of the baseline"
    if forecast["unknown_target"]:
        yield "  a fixture fairness_target says who is asked: recorded answers were not looked up"
    if forecast["prompt_tokens"] is None:
        return
    if forecast["known"]:
        prompt, completion = forecast["prompt_tokens"], forecast["completion_tokens"]
        took = f"(as {counted(forecast['known'], 'recorded answer')} took)"
        yield f"  about {prompt:,.0f} prompt and {completion:,.0f} completion tokens {took}"
    else:
        answers = (
            "any number of completion tokens (no max_tokens)"
            if forecast["completion_tokens"] is None
            else f"at most {forecast['completion_tokens']:,.0f} completion tokens (max_tokens)"
        )
        yield f"  about {forecast['prompt_tokens']:,.0f} prompt tokens (4 characters each) and {answers}"
    if forecast["cost"] is not None:
        yield f"  cost: {'about' if forecast['known'] else 'at most about'} {money(forecast['cost'])} (fairness_prices)"


def _cost_of_all(forecasts: Sequence[Forecast]) -> str:
    asking = [forecast for forecast in forecasts if forecast["to_send"]]
    costs = [forecast["cost"] for forecast in asking if forecast["cost"] is not None]
    if not costs or len(costs) < len(asking):
        return ""
    word = "about" if all(forecast["known"] for forecast in asking) else "at most about"
    return f", cost {word} {money(sum(costs))}"


def money(cost: float) -> str:
    """A sum in whatever currency the prices are in: two decimals, more where it is small."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.2g}" if cost >= 0.0001 else f"{cost:.1e}"
