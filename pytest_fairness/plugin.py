"""Hooks and fixtures of the pytest plugin; everything else is imported only with `--fairness`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.options import OPTIONS, REPLACED

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_fairness.pytest_integration.fixtures import CorpusGenerator, FairnessCheck, LlmClient
    from pytest_fairness.pytest_integration.planning import AuditSession


SESSION = "fairness-session"
"""Name under which pytest's plugin manager knows the session; without `--fairness`, there is no session."""

# pytest before 8.4 has no number types for ini values: the values are read as text and converted like options.
_TYPED_INI = pytest.version_tuple >= (8, 4)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_fairness import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fairness", "LLM fairness regression testing")
    for option in OPTIONS:
        if option.on_command_line:
            how: dict[str, Any] = {"action": "store_true", "default": None if option.in_ini else False}
            if option.metavar is not None:
                how = {"metavar": option.metavar}
            if option.repeatable:
                how |= {"action": "append", "default": []}
            group.addoption(option.flag, help=option.short_help, **how)
        if option.in_ini:
            kind = option.type.ini if _TYPED_INI or option.type.ini not in ("int", "float") else "string"
            parser.addini(option.name, option.short_help, type=kind, default=None)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> Generator[None]:
    """Raise `pytest.UsageError` for a misspelt option of the plugin; pytest's own error names no similar option."""
    yield
    if any(arg.startswith("--fair") for arg in args):
        unknown = parser.parse_known_and_unknown_args(args)[1]
        names = [arg.partition("=")[0] for arg in unknown if arg.startswith("--fair")]
        if names:
            if replaced := REPLACED.get(names[0].removeprefix("--").replace("-", "_")):
                raise pytest.UsageError(f"{names[0]}: there is no such option any more: {replaced}.")
            from pytest_fairness.probes.diagnostics import nearest

            # Names are compared without their common prefix.
            flags = {
                option.flag.removeprefix("--fairness-"): option.flag for option in OPTIONS if option.on_command_line
            }
            if near := nearest(names[0].removeprefix("--fairness-"), flags):
                raise pytest.UsageError(f"{names[0]}: there is no such option. Did you mean '{flags[near]}'?")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `fairness`; start the session if `--fairness` or an option that implies it is given."""
    if config.getoption("fairness_plan") or config.getoption("fairness_selftest"):
        config.option.fairness_dry_run = True
    config.addinivalue_line("markers", "fairness: a test that audits a model; it runs only with --fairness")
    if any(map(config.getoption, ("fairness", "fairness_rebaseline", "fairness_dry_run", "fairness_measure"))):
        from pytest_fairness.pytest_integration.session import start

        start(config)
        return
    for option in ("shard", "batch", "against"):
        if config.getoption(f"fairness_{option}"):
            raise pytest.UsageError(f"--fairness-{option} has no effect without --fairness. Add --fairness.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests marked `fairness` if pytest runs without `--fairness`."""
    if not config.pluginmanager.has_plugin(SESSION):
        for item in items:
            if item.get_closest_marker("fairness"):
                item.add_marker(pytest.mark.skip(reason="fairness audits run only with --fairness"))


@pytest.fixture(scope="session")
def fairness_target(request: pytest.FixtureRequest) -> Any:
    """Return the target; a conftest may override the fixture to return a function from a prompt to a text."""
    return _session(request.config, "fairness_target").configured_target(getattr(request, "param", None))


@pytest.fixture
def llm_client(request: pytest.FixtureRequest) -> LlmClient:
    """Return a client of the target: `llm_client.complete("Greet Joseph.", trials=3, temperature=1.0)`."""
    session = _session(request.config, "llm_client")
    from pytest_fairness.pytest_integration.fixtures import LlmClient

    return LlmClient(session, request)


@pytest.fixture
def corpus_generator(request: pytest.FixtureRequest) -> CorpusGenerator:
    """Return a function that generates a corpus: texts about several groups, which audits can compare.

    `corpus = corpus_generator("Write to {name}.", axes={"name": {"unmarked": "Joseph", "marked": ["Kelly"]}})`, then
    `corpus.jsd("name", "Kelly")`.
    """
    session = _session(request.config, "corpus_generator")
    from pytest_fairness.pytest_integration.fixtures import CorpusGenerator

    return CorpusGenerator(session, request)


@pytest.fixture
def fairness_check(request: pytest.FixtureRequest) -> FairnessCheck:
    """Return a function that judges a measurement: `fairness_check("letters", corpus.jsd("name", "Kelly"))`."""
    session = _session(request.config, "fairness_check")
    from pytest_fairness.pytest_integration.fixtures import FairnessCheck

    return FairnessCheck(session, request)


def _session(config: pytest.Config, fixture: str) -> AuditSession:
    session: AuditSession | None = config.pluginmanager.get_plugin(SESSION)
    if session is None:
        pytest.skip(f"the fixture {fixture} works only with --fairness")
    return session
