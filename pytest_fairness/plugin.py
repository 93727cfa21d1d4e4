"""pytest's hooks and options, nothing else; the rest is loaded only when `--fairness` is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from pytest_fairness.pytest_integration.fixtures import Check, Client, CorpusGenerator
    from pytest_fairness.pytest_integration.session import FairnessSession

SESSION = "fairness-session"
"""The name under which a run takes part in pytest; nothing has it without `--fairness`."""

# pytest before 8.4 knows no numbers in an ini file; there they are read as text and converted like an option's.
_TYPED_INI = pytest.version_tuple >= (8, 4)
_INT: Literal["int"] | None = "int" if _TYPED_INI else None
_FLOAT: Literal["float"] | None = "float" if _TYPED_INI else None

_INI_OF_OPTIONS: tuple[tuple[str, Any, str], ...] = (
    ("fairness_target", None, "who is audited: a target, or several lines NAME=TARGET (default: local)"),
    ("fairness_base_url", None, "endpoint of an openai: target (default: that of OpenAI)"),
    ("fairness_concurrency", _INT, "most requests in flight over the whole run (default: 16)"),
    ("fairness_max_requests", _INT, "most requests that a run may send, all workers together (default: no limit)"),
)
_INI_ONLY: tuple[tuple[str, Any, str], ...] = (
    ("fairness_probes", "args", "files and folders of probes to collect (default: probes)"),
    ("fairness_marks", "args", "marks that probes may have beside those that `markers` registers (default: none)"),
    ("fairness_baselines", None, "folder of baseline files (default: baselines)"),
    ("fairness_baseline_responses", "bool", "keep the answers beside the baselines made from them (default: true)"),
    ("fairness_store", None, "file of recorded responses (default: .fairness/responses.sqlite)"),
    ("fairness_max_age", _FLOAT, "hours after which a recorded response is asked again (default: 24)"),
    (
        "fairness_target_version",
        None,
        (
            "version of the target: responses of another one are not reused, and of a python: or http target only with "
            "a version (default: none)"
        ),
    ),
    (
        "fairness_http_body",
        None,
        (
            "what an http target is sent: JSON with the placeholder {prompt}, and {system}, {temperature}, {top_p}, "
            '{max_tokens}, {seed} (default: {"prompt": "{prompt}"})'
        ),
    ),
    ("fairness_http_answer", None, "where the answer of an http target is, a JSONPath (default: $.answer)"),
    (
        "fairness_http_headers",
        "linelist",
        "lines `Name: value` sent to an http target; ${NAME} stands for what is in the environment (default: none)",
    ),
    (
        "fairness_judge",
        None,
        "target of the judge model that reads the answers of probes with `answer: {judge: true}` (default: none)",
    ),
    ("fairness_judge_base_url", None, "endpoint of an openai: judge (default: that of the target)"),
    ("fairness_embeddings_base_url", None, "endpoint of openai: embeddings (default: that of the target)"),
    ("fairness_inconclusive", None, "what an inconclusive audit is: warn or fail (default: warn)"),
    (
        "fairness_inconclusive_runs",
        None,
        (
            "what an audit is that was inconclusive in each of the last fairness_inconclusive_history runs: warn or "
            "fail (default: warn)"
        ),
    ),
    ("fairness_inconclusive_history", _INT, "how many runs these are, this one included (default: 5)"),
    (
        "fairness_min_audits",
        _INT,
        "fewest audits that must run, or the run fails (default: 1 where there are probe folders or in CI, else 0)",
    ),
    ("fairness_timeout", _FLOAT, "seconds one request may take (default: 120)"),
    ("fairness_device", None, "where a transformers: target computes: cpu, cuda, cuda:1 or mps (default: the best)"),
    ("fairness_give_up", _FLOAT, "seconds without any answer after which the rest is given up (default: 120)"),
    (
        "fairness_max_answer_bytes",
        _INT,
        "most bytes of an answer, after decompression; a longer one is unreadable (default: 4194304)",
    ),
    (
        "fairness_prices",
        "linelist",
        "lines MODEL INPUT OUTPUT, price per million tokens, for the cost in reports (default: none)",
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare every option and ini name; nothing is read before `--fairness` asks for it."""
    group = parser.getgroup("fairness", "LLM fairness regression testing")
    option = group.addoption
    option(
        "--fairness",
        action="store_true",
        help="Audit: collect the probe files too, and run tests marked `fairness` (default: off). Further settings: "
        + "; ".join(f"{name}: {text}" for name, _, text in _INI_ONLY),
    )
    option(
        "--fairness-rebaseline",
        action="store_true",
        help="Audit, and write what is measured as the new baseline of the selected items (default: off)",
    )
    option(
        "--fairness-target",
        metavar="T",
        action="append",
        default=[],
        help="Who is audited: local, local:PATH.gguf, openai:MODEL, anthropic:MODEL, transformers:ID_OR_PATH, "
        "python:package.module:callable, http://HOST/PATH or https://HOST/PATH; repeated as NAME=T, several of them "
        "(ini: fairness_target, environment: PYTEST_FAIRNESS_TARGET, default: local)",
    )
    option(
        "--fairness-base-url",
        metavar="URL",
        help="Endpoint of an openai: target "
        "(ini: fairness_base_url, environment: OPENAI_BASE_URL, default: that of OpenAI)",
    )
    option(
        "--fairness-concurrency",
        metavar="N",
        help="Most requests in flight over the whole run, all workers together "
        "(ini: fairness_concurrency, default: 16)",
    )
    option("--fairness-trials", metavar="N", help="Override every probe's trials (default: as each probe says)")
    option("--fairness-fresh", action="store_true", help="Ask again, even where an answer is recorded (default: off)")
    option(
        "--fairness-replay",
        action="store_true",
        help="Answer from recorded responses only, however old; nothing is ever sent (default: off)",
    )
    option(
        "--fairness-dry-run",
        action="store_true",
        help="Print per probe what an audit would send, and send nothing; no test runs (default: off)",
    )
    option(
        "--fairness-max-requests",
        metavar="N",
        help="Stop sending after N requests, all workers together and every retry counted; items that lack answers "
        "are errors (ini: fairness_max_requests, default: no limit)",
    )
    option(
        "--fairness-report",
        metavar="PATH",
        action="append",
        default=[],
        help="Write a report to PATH, which ends in .json, .html or .md; may be repeated (default: none)",
    )
    for name, kind, text in (*_INI_OF_OPTIONS, *_INI_ONLY):
        parser.addini(name, text, type=kind, default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and with `--fairness` or what implies it the run itself."""
    config.addinivalue_line("markers", "fairness: an audit for fairness; runs only with --fairness")
    if any(map(config.getoption, ("fairness", "fairness_rebaseline", "fairness_dry_run"))):
        from pytest_fairness.pytest_integration.session import start

        start(config, [name for name, *_ in (*_INI_OF_OPTIONS, *_INI_ONLY)])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `--fairness`, skip what is marked."""
    if not config.pluginmanager.has_plugin(SESSION):
        for item in items:
            if item.get_closest_marker("fairness"):
                item.add_marker(pytest.mark.skip(reason="audits for fairness run with --fairness only"))


@pytest.fixture(scope="session")
def fairness_target(request: pytest.FixtureRequest) -> Any:
    """Who is audited. Override it in a conftest with any callable that takes a prompt and returns an answer."""
    return _session(request.config, "fairness_target").asking.open_target(getattr(request, "param", None))


@pytest.fixture
def llm_client(request: pytest.FixtureRequest) -> Client:
    """Asks the target: `complete(prompt, system=None, trials=1, **sampling) -> list[Response]`."""
    session = _session(request.config, "llm_client")
    from pytest_fairness.pytest_integration.fixtures import Client

    return Client(session, request)


@pytest.fixture
def corpus_generator(request: pytest.FixtureRequest) -> CorpusGenerator:
    """Asks for parallel texts: `corpus_generator(prompt, axes=...)` gives a corpus that every text audit measures."""
    session = _session(request.config, "corpus_generator")
    from pytest_fairness.pytest_integration.fixtures import CorpusGenerator

    return CorpusGenerator(session, request)


@pytest.fixture
def fairness_check(request: pytest.FixtureRequest) -> Check:
    """Judges what a corpus measured: `fairness_check(name, measurement, limit=None, tolerance=None)`."""
    session = _session(request.config, "fairness_check")
    from pytest_fairness.pytest_integration.fixtures import Check

    return Check(session, request)


def _session(config: pytest.Config, fixture: str) -> FairnessSession:
    session: FairnessSession | None = config.pluginmanager.get_plugin(SESSION)
    if session is None:
        pytest.skip(f"{fixture} asks a model, which is done with --fairness only")
    return session
