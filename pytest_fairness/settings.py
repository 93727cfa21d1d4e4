"""The settings of one run, from whichever place they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

DEFAULT_TARGET = "local"
DEFAULT_HTTP_BODY = '{"prompt": "{prompt}"}'
DEFAULT_HTTP_ANSWER = "$.answer"


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs.

    Attributes:
        model: the target as the user names it, with or without what stands before its first colon.
        prompt, completion: price of a million tokens, in whatever currency.
    """

    model: str
    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class RunSettings:
    """One run's settings, resolved: options before environment before ini file before defaults; paths are absolute.

    Attributes:
        root: pytest's rootdir, or the current folder outside pytest.
        target: who is audited, as the user named it; of several targets the first.
        target_is_default: whether no option, environment variable or ini setting names a target.
        targets: several targets by the names that users gave them; empty where the one target has no name.
        base_url: endpoint of an `openai:` target, or `None` for OpenAI's own.
        judge: target of the judge model, or `None` where none is named.
        judge_base_url: endpoint of an `openai:` judge; `None` for that of the target.
        embeddings_base_url: endpoint of `openai:` embeddings; `None` for that of the target.
        http_body: what an `http` target is sent: JSON with placeholders.
        http_answer: where its answer is: a JSONPath.
        http_headers: lines `Name: value` that it is sent, with `${NAME}` for what is in the environment.
        target_version: names the version of what is audited; answers of another one do not count. Those of a `python:`
            or `http` target are reused only with it.
        concurrency: most requests in flight, all processes together.
        trials: overrides every probe's `trials`.
        fresh: ask again, even where an answer is recorded.
        replay: answer from recorded responses only.
        probes: files and folders to collect.
        baselines: folder of baseline files.
        baseline_responses: whether baselines keep the answers they were measured from.
        store: file of recorded responses.
        max_age_hours: age past which a recorded response is asked again.
        inconclusive: what an inconclusive item counts as.
        inconclusive_runs: what an item counts as that was inconclusive in each of the last runs.
        inconclusive_history: how many runs these are, this one included.
        min_audits: fewest audits that must run.
        timeout: seconds one request may take.
        give_up: seconds without one successful answer after which the rest is given up.
        max_answer_bytes: most bytes of one answer, after decompression; a longer one is unreadable.
        max_requests: most requests that the run may send, all processes together; every try counts.
        prices: what models cost.
        device: where a `transformers:` target computes (`cpu`, `cuda`, `cuda:1`, `mps`); `None` for the best.
    """

    root: Path
    target: str = DEFAULT_TARGET
    target_is_default: bool = False
    targets: Mapping[str, str] = field(default_factory=dict)
    # Left out of what a traceback shows of the settings, as they may hold a password.
    base_url: str | None = field(default=None, repr=False)
    judge: str | None = None
    judge_base_url: str | None = field(default=None, repr=False)
    embeddings_base_url: str | None = field(default=None, repr=False)
    http_body: str = DEFAULT_HTTP_BODY
    http_answer: str = DEFAULT_HTTP_ANSWER
    http_headers: tuple[str, ...] = field(default=(), repr=False)
    target_version: str | None = None
    concurrency: int = 16
    trials: int | None = None
    fresh: bool = False
    replay: bool = False
    probes: tuple[Path, ...] = ()
    baselines: Path = Path("baselines")
    baseline_responses: bool = True
    store: Path = Path(".fairness/responses.sqlite")
    max_age_hours: float = 24.0
    inconclusive: Literal["warn", "fail"] = "warn"
    inconclusive_runs: Literal["warn", "fail"] = "warn"
    inconclusive_history: int = 5
    min_audits: int = 0
    timeout: float = 120.0
    give_up: float = 120.0
    max_answer_bytes: int = 4 * 1024 * 1024
    max_requests: int | None = None
    prices: tuple[Price, ...] = ()
    device: str | None = None

    def price_of(self, target: str) -> Price | None:
        """What a target costs, where that is known."""
        named = (target, target.partition(":")[2])
        return next((price for price in self.prices if price.model in named), None)
