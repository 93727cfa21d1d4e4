"""Table of all options and settings: command line, ini file, environment, type, default, help text and validation.

The command-line options, the ini names, `RunSettings` and the table in `docs/reference/options.md` are generated from
this table. pytest imports this module at every start, so the module imports only the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from pytest_fairness import option_types
from pytest_fairness.option_types import (
    BOOLEAN,
    BUDGET,
    LINE,
    LINES,
    PATH,
    PATHS,
    PRICES,
    SCORERS,
    SHARD,
    STORE,
    TEXT,
    Budget,
    OptionType,
    Price,
    Shard,
    StoreAddress,
)

PREFIX = "fairness_"
DEFAULT_TARGET = "local"
DEFAULT_STORE = Path(".fairness/responses.sqlite")
DEFAULT_HTTP_BODY = '{"prompt": "{prompt}"}'
DEFAULT_HTTP_ANSWER = "$.answer"
MAX_TRIALS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One row of the table of options.

    Attributes:
        name: name with prefix, as in the ini file; the command line uses dashes instead of underscores.
        help: help text without the default. `pytest --help` shows only the part before the first semicolon or full
            stop, which is a noun phrase or an imperative.
        default: the default value as the documentation shows it.
        setting: name of the attribute of `RunSettings`; `None` for the options in `ACTIONS`.
        metavar: placeholder of the value on the command line; `None` for a flag.
        environment: environment variable that is used if the option is not on the command line.
    """

    name: str
    help: str
    default: str
    type: OptionType = TEXT
    setting: str | None = None
    metavar: str | None = None
    on_command_line: bool = False
    in_ini: bool = True
    repeatable: bool = False
    environment: str | None = None

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def short_help(self) -> str:
        return f"{re.split('[;.] ', self.help)[0]} (default: {self.default})"


def _setting(
    value: Any,
    help_: str,
    type_: OptionType = TEXT,
    *,
    default: str | None = None,
    secret: bool = False,
    name: str | None = None,
    **others: Any,
) -> Any:
    """Return a field of `RunSettings` whose metadata is a row of the table; tracebacks do not show a secret."""
    row = {"name": name, "help": help_, "default": default or str(value), "type": type_, **others}
    # Addresses and headers may hold a password, which a traceback must not show.
    return field(default=value, repr=not secret, metadata=row)


def _option(value: Any, help_: str, type_: OptionType = TEXT, *, metavar: str, **others: Any) -> Any:
    return _setting(value, help_, type_, metavar=metavar, on_command_line=True, **others)


def _flag(help_: str) -> Any:
    return _setting(False, help_, BOOLEAN, default="off", on_command_line=True, in_ini=False)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of one run.

    The command line has priority over the environment, the environment over the ini file, and the ini file over the
    defaults. All paths in this object are absolute.

    Attributes:
        root: pytest's rootdir, or the current folder outside pytest; relative paths in the ini file start there.
        target_is_default: `True` if no option, environment variable or ini option names a target.
        targets: targets by name, if the user named them (`NAME=TARGET`); empty for a single target without a name.
        target_options: options that are written after the target's name, such as `base_url`, by name.
        max_answer_bytes: maximum size of one answer in bytes, after decompression; a longer answer is unreadable.
        device: device of `transformers:` models, such as `cuda:1`; `None` for the best one.
    """

    root: Path
    target_is_default: bool = False
    targets: Mapping[str, str] = field(default_factory=dict)
    target_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    target: str = _option(
        DEFAULT_TARGET,
        "System under test, such as openai:MODEL or python:package.module:callable; all forms: local, local:PATH.gguf, "
        "openai:MODEL, anthropic:MODEL, litellm:PROVIDER/MODEL, transformers:ID_OR_PATH, "
        "python:package.module:callable, http://HOST/PATH and https://HOST/PATH. For several targets, repeat the "
        "option as NAME=TARGET; in the ini file, write a line NAME=TARGET for each target",
        metavar="T",
        repeatable=True,
        environment="PYTEST_FAIRNESS_TARGET",
    )
    base_url: str | None = _option(
        None,
        "Endpoint of an openai: target, such as http://localhost:8000/v1",
        metavar="URL",
        default="OpenAI's endpoint",
        environment="OPENAI_BASE_URL",
        secret=True,
    )
    concurrency: int = _option(
        16, "Maximum number of requests in flight at a time, over all workers", option_types.whole_number(), metavar="N"
    )
    max_requests: int | None = _option(
        None,
        "Send no more than N requests, counted over all workers and including retries; an item that lacks answers "
        "gets the verdict error",
        option_types.whole_number(),
        metavar="N",
        default="no limit",
    )
    trials: int | None = _option(
        None,
        "Number of answers to each prompt, in place of `trials` in the probes",
        option_types.whole_number(most=MAX_TRIALS),
        metavar="N",
        default="the value in each probe",
        in_ini=False,
    )
    fresh: bool = _flag("Send every request again, even if its response is recorded")
    replay: bool = _flag("Use recorded responses only, whatever their age, and send no requests")
    probes: tuple[Path, ...] = _setting(
        (Path("probes"),), "Files and folders of probes to collect", PATHS, default="probes"
    )
    baselines: Path = _setting(Path("baselines"), "Folder of the baseline files", PATH)  # noqa: RUF009 - returns a field
    baseline_responses: bool = _setting(
        True,
        "Store, beside the baselines, the responses from which the baselines were measured",
        BOOLEAN,
        default="true",
    )
    store: StoreAddress = _setting(  # noqa: RUF009 - returns a field
        DEFAULT_STORE,
        "Store of the responses, a file or a PostgreSQL database; several machines can share the database, "
        "postgresql://USER@HOST/DATABASE (password in PGPASSWORD, needs the extra `postgres`)",
        STORE,
        environment="PYTEST_FAIRNESS_STORE",
    )
    history: str | None = _option(
        None,
        "History of nightly runs, a .jsonl file, a folder, or `store` for the store of the responses; each run adds a "
        "line for each item, and verdicts use all runs since the baseline",
        LINE,
        metavar="PATH",
        default="none",
    )
    verdict: Literal["accumulate", "single"] = _setting(
        "accumulate",
        "Runs that a verdict is based on if there is a history. accumulate: all runs since the baseline. single: this "
        "run. A probe's key `verdict` overrides it",
        option_types.choice("accumulate", "single"),
    )
    nightly_share: float = _setting(
        1.0,
        "Share of the trials, or of the records, entities or questions, that a run with a history asks; the parts "
        "rotate from run to run",
        option_types.number(most=1.0),
        default="1",
    )
    run_name: str | None = _option(
        None,
        "Name of a run of several machines with one store; the machines share the limit of --fairness-max-requests and "
        "the responses of this run. In CI, use the number of the pipeline and of the attempt",
        LINE,
        metavar="NAME",
        default="none",
        environment="PYTEST_FAIRNESS_RUN_NAME",
    )
    shard: Shard | None = _option(  # noqa: RUF009 - returns a field
        None,
        "Send part NUMBER of COUNT of the requests, and give no verdicts; several jobs send one part each, "
        "`python -m pytest_fairness merge` merges their stores, and a run with --fairness-replay gives the verdicts",
        SHARD,
        metavar="NUMBER/COUNT",
        default="none",
        in_ini=False,
    )
    batch: Literal["wait", "submit", "collect"] | None = _option(
        None,
        "Send requests to openai: and anthropic: targets in batches, at half the price; wait: wait up to 24 hours for "
        "the answers. submit: end without answers and verdicts. collect: record the answers of ended batches, and give "
        "verdicts on items whose answers are all recorded",
        option_types.choice("wait", "submit", "collect"),
        metavar="WHEN",
        default="none",
    )
    max_age_hours: float = _setting(
        24.0,
        "Hours after which a request with a recorded response is sent again",
        option_types.number(zero=True),
        default="24",
        name="fairness_max_age",
    )
    target_version: str | None = _setting(
        None,
        "Version of the target. Responses of another version are not reused; responses of a python: or http target "
        "are reused only if a version is set",
        default="none",
    )
    http_body: str = _setting(
        DEFAULT_HTTP_BODY,
        "JSON body of a request to an http target; placeholders: {prompt} or {messages}, {tools}, {system}, "
        "{temperature}, {top_p}, {max_tokens}, {seed}",
    )
    http_answer: str = _setting(DEFAULT_HTTP_ANSWER, "JSONPath of the answer in the response of an http target")
    http_headers: tuple[str, ...] = _setting(
        (),
        "Headers sent to an http target, one `Name: value` per line; ${NAME} is replaced by the value of the "
        "environment variable NAME",
        LINES,
        default="none",
        secret=True,
    )
    api_headers: tuple[str, ...] = _setting(
        (),
        "Headers for targets with the API of OpenAI or Anthropic, one `Name: value` per line; ${NAME} "
        "is replaced by the value of the environment variable NAME",
        LINES,
        default="none",
        secret=True,
    )
    judge: str | None = _setting(
        None,
        "Judge model, such as openai:MODEL or openai:MODEL base_url=ADDRESS; probes with `answer: {judge: true}` or "
        "`refusals: {by: judge}` use it",
        default="none",
        secret=True,
    )
    embeddings_base_url: str | None = _setting(
        None, "Endpoint of an openai: embedding model", default="the target's endpoint", secret=True
    )
    scorers: tuple[tuple[str, str], ...] = _setting(
        (),
        "Scorers for the audit `score`, one NAME=SCORER per line or separated by commas; a scorer is "
        "python:package.module:callable, transformers:ID_OR_PATH:LABEL, a built-in scorer (words, sentences, flesch, "
        "sentiment, number) or a scorer of an installed package. Probes name scorers by NAME",
        SCORERS,
        default="none",
    )
    plan: Budget | None = _option(  # noqa: RUF009 - returns a field
        None,
        "Print the trials of each probe with which BUDGET finds most; a budget is 10 (in the currency of "
        "fairness_prices) or 5000req (requests). No request is sent, and no test runs",
        BUDGET,
        metavar="BUDGET",
        default="none",
        in_ini=False,
    )
    against: str | None = _option(
        None,
        "Judge by the baselines of the git revision REV; it is a branch such as origin/main, or a commit, and answers "
        "to changed prompts are compared, too",
        LINE,
        metavar="REV",
        default="the working tree",
        in_ini=False,
    )
    control: bool = _flag(
        "Ask the prompts and the target of the revision of --fairness-against again; drift since its baseline and the "
        "own change are then two numbers with a verdict each"
    )
    creep: Literal["warn", "fail"] = _setting(
        "warn",
        "What accepted changes do that together exceed the tolerance. They are counted from the first baseline, by the "
        "git history. warn: a note. fail: the run fails",
        option_types.choice("warn", "fail"),
    )
    fail_on: tuple[str, ...] = _setting(
        (),
        "What makes a run fail, besides failed audits; inconclusive: an inconclusive audit. inconclusive_runs: an "
        "audit that is inconclusive in 5 runs in a row. orphans: a baseline that belongs to no item, or whose folder "
        "does not exist. level_change: answers that changed much for all groups alike. review: a probe whose day "
        "`risk.review_by` has passed. What is not listed is a note",
        option_types.words("inconclusive", "inconclusive_runs", "orphans", "level_change", "review"),
        default="none",
    )
    min_audits: int = _setting(
        0,
        "Minimum number of audits that must run; with fewer, the run fails",
        option_types.whole_number(least=0),
        default="1 in CI or if there are probe folders, else 0",
    )
    timeout: float = _setting(120.0, "Time limit of one request in seconds", option_types.number(), default="120")
    give_up: float = _setting(
        120.0,
        "Seconds without any answer after which the run gives up on the target",
        option_types.number(),
        default="120",
    )
    max_answer_bytes: int = 4 * 1024 * 1024
    backend: Literal["none", "joblib", "dask", "ray"] = _setting(
        "none",
        "Processes that measure large data; the results do not depend on this setting. none: this process. joblib: a "
        "process for each core. dask or ray: a cluster (needs the extra of this name)",
        option_types.choice("none", "joblib", "dask", "ray"),
    )
    device: str | None = None
    prices: tuple[Price, ...] = _setting(
        (),
        "Prices per million tokens, for the cost in reports; a line MODEL INPUT OUTPUT for each model, such as `gpt-5 "
        "1.25 10`",
        PRICES,
        default="none",
    )

    @property
    def in_batches(self) -> bool:
        return self.batch is not None and not self.replay

    @property
    def batch_submit(self) -> bool:
        return self.batch == "submit"

    @property
    def batch_collect(self) -> bool:
        return self.batch == "collect"

    def price_of(self, target: str) -> Price | None:
        names = (target, target.partition(":")[2])
        return next((price for price in self.prices if price.model in names), None)


def _switch(name: str, help_: str) -> Option:
    return Option(name=name, help=help_, default="off", type=BOOLEAN, on_command_line=True, in_ini=False)


ACTIONS = (
    _switch("fairness", "Run audits: collect the probe files, and run the tests marked `fairness`"),
    _switch(
        "fairness_rebaseline", "Run audits, and write the measurements of the selected items as their new baseline"
    ),
    _switch(
        "fairness_dry_run", "Print the requests that each selected probe would send; send no request and run no test"
    ),
    _switch(
        "fairness_selftest",
        "Test the verdicts on the recorded answers of the baselines: false reds, found changes; send no "
        "request and run no test",
    ),
    _switch(
        "fairness_measure",
        "Run audits without verdicts: report estimates, intervals, p-values and effect sizes; no baseline is read",
    ),
    Option(
        name="fairness_report",
        help="Write a report to PATH: .json, .html, .md, .comment.md (of a pull request), .codequality.json",
        default="none",
        metavar="PATH",
        on_command_line=True,
        in_ini=False,
        repeatable=True,
    ),
    Option(
        name="fairness_bundle",
        help="Write all that the verdicts rest on into the bundle PATH (.zip); `python -m pytest_fairness verify` "
        "checks it on any machine",
        default="none",
        metavar="PATH",
        on_command_line=True,
        in_ini=False,
    ),
)
"""Options that start an action and set no attribute of `RunSettings`; those without a value imply `--fairness`."""


def _rows() -> Iterable[Option]:
    for setting in fields(RunSettings):
        if setting.metadata:
            row: dict[str, Any] = dict(setting.metadata)
            yield Option(**{**row, "name": row["name"] or PREFIX + setting.name, "setting": setting.name})


REPLACED = {
    "fairness_batch_submit": "write --fairness-batch=submit",
    "fairness_batch_collect": "write --fairness-batch=collect",
    "fairness_github_comment": "write --fairness-report NAME.comment.md",
    "fairness_keep_days": "run `python -m pytest_fairness store --prune DAYS`",
    "fairness_reason": "write the reason in the message of the commit of the baselines, which `git log` shows",
    "fairness_accepted_by": "the author of the commit of the baselines accepts them, as `git log` shows",
    "fairness_marks": "list the marks in pytest's own ini option `markers`",
    "fairness_judge_base_url": "write the address behind the judge: fairness_judge = openai:MODEL base_url=ADDRESS",
    "fairness_inconclusive": "write fairness_fail_on = inconclusive",
    "fairness_inconclusive_runs": "write fairness_fail_on = inconclusive_runs",
    "fairness_inconclusive_history": "the number of runs is 5",
    "fairness_orphans": "write fairness_fail_on = orphans",
    "fairness_level_change": "write fairness_fail_on = level_change",
    "fairness_junit_inconclusive": "inconclusive audits are passed test cases, whose property `verdict` says so",
    "fairness_max_answer_bytes": "answers of more than 4 MiB are unreadable",
    "fairness_device": "set the environment variable CUDA_VISIBLE_DEVICES",
}
"""What replaces options that earlier builds had, by name."""

SETTINGS = tuple(_rows())
"""Options that set the attributes of `RunSettings`."""
OPTIONS = (*ACTIONS, *SETTINGS)


def markdown_table() -> str:
    """Return the table of options in Markdown, for `docs/reference/options.md`."""
    rows = ["| Command line | Ini | Environment | Default | Meaning |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        value = f" {option.metavar}" if option.metavar else ""
        flag = f"`{option.flag}{value}`" if option.on_command_line else ""
        ini = f"`{option.name}`" if option.in_ini else ""
        environment = f"`{option.environment}`" if option.environment else ""
        default = option.default.replace("|", "\\|")
        rows.append(f"| {flag} | {ini} | {environment} | {default} | {option.help} |")
    return "\n".join(rows)
