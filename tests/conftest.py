"""Fixtures of all tests, and pytest's own test bench."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.pytester import SysModulesSnapshot
from hypothesis import settings

from tests.support import quick_runs
from tests.support.processes import GARBAGE_THRESHOLDS
from tests.support.projects import Project


def _snapshot(pytester: pytest.Pytester) -> SysModulesSnapshot:
    """Return pytester's snapshot of the imported modules, after which only those of temporary folders are unloaded.

    Importing the others anew would take most of the time of a run inside a test, and compiled modules cannot be loaded
    twice in a process.
    """
    temporary, before = str(pytester.path.parent), set(sys.modules)

    def is_installed(name: str) -> bool:
        if name in before:
            return False  # the snapshot has the module
        spec = getattr(sys.modules[name], "__spec__", None)
        places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
        return not any(str(place).startswith(temporary) for place in places)

    return SysModulesSnapshot(preserve=is_installed)


setattr(pytest.Pytester, "_Pytester__take_sys_modules_snapshot", _snapshot)  # noqa: B010 - a private method

quick_runs.prepare()

pytest_plugins = ["pytester", "tests.support.postgres"]

SLOW = (
    "integration/",
    "unit/asking/test_batch_table.py",
    "unit/asking/test_kill.py",
    "unit/asking/test_machines.py",
    "unit/asking/test_postgres.py",
    "unit/asking/test_retries.py",
    "unit/asking/test_store.py",
    "unit/asking/test_system_limits.py",
    "unit/audits/lists/test_recommendation_audits.py",
    "unit/audits/pronouns/test_coreference_audits.py",
    "unit/audits/records/test_counterfactual_audits.py",
    "unit/audits/records/test_flip_direction.py",
    "unit/audits/records/test_impact_ratio.py",
    "unit/audits/records/test_number_gaps.py",
    "unit/audits/scores/test_texts.py",
    "unit/audits/stereotypes/test_likelihood.py",
    "unit/audits/stereotypes/test_markers.py",
    "unit/audits/test_unit_audit.py",
    "unit/audits/text/test_generation_audits.py",
    "unit/audits/text/test_many_texts.py",
    "unit/audits/text/test_mmd.py",
    "unit/audits/text/test_refusals.py",
    "unit/audits/text/test_svm.py",
    "unit/baselines/test_bounds.py",
    "unit/reports/test_browser.py",
    "unit/scorers/test_classifier.py",
    "unit/stats/groups/test_distance_measures.py",
    "unit/stats/resampling/test_significance.py",
    "unit/stats/test_interim_analyses.py",
    "unit/stats/texts/test_excess_divergence.py",
    "unit/targets/test_local.py",
    "unit/targets/test_transformers.py",
)
"""Tests that `-m "not slow"` leaves out."""

TORCH = (
    "integration/options/test_fairness_scorers.py",
    "integration/test_embeddings.py",
    "integration/test_likelihood.py",
    "integration/test_stereotype.py",
    "unit/scorers/test_classifier.py",
    "unit/targets/test_transformers.py",
)
"""Tests that import torch and transformers, which takes four seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its file; with `-n`, the slow tests go first, so that no worker ends alone with one.

    Those that import torch are the very first, so that one worker gets all of them.
    """
    here = Path(__file__).parent
    files = {path: path.relative_to(here).as_posix() for path in {item.path for item in items}}
    for item in items:
        if files[item.path].startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (not files[item.path].startswith(TORCH), item.get_closest_marker("slow") is None))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the test modules of a complete run; each worker begins at another one.

    What one worker has compiled, the others need not compile. They would otherwise compile the same modules at the same
    time, for four seconds each.
    """
    tests = Path(__file__).parent
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if not worker or [session.config.rootpath / path for path in session.config.args] != [tests]:
        return
    modules = sorted(path.relative_to(tests.parent) for path in tests.rglob("test_*.py"))
    start = len(modules) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in modules[start:] + modules[:start]:
        with suppress(Exception, pytest.skip.Exception):  # an error is raised again when the module is collected
            import_module(".".join(path.with_suffix("").parts))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Leave the tests of a module to one worker where possible: its fixtures and imports are then made once."""
    if config.option.dist != "load":
        return None  # another way is asked for
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped] # xdist has no types

    return WorkStealingScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Search the garbage for errors once; pytest does so ten times, each time in all modules and collected tests."""
    gc.collect()
    gc.freeze()


# How long an example takes says something of the machine, which may have other things to do, and nothing of the code.
# Each run tries the same 50 examples, so that it fails for what was changed only; `pytest --hypothesis-profile=search`
# tries 500 others.
settings.register_profile("patient", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile("patient")

# Matrices of tests are small: more threads than one take processor time, and no less of the clock.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Threads of the embedded model that wait must not keep the cores busy. OpenMP reads the variable when it is loaded, by
# torch perhaps.
os.environ.setdefault("GOMP_SPINCOUNT", "0")

gc.set_threshold(*GARBAGE_THRESHOLDS)

# Compiling the package takes a second of each process that a test starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Rewriting the assertions of all test modules takes five seconds of each worker.
sys.dont_write_bytecode = False

# A shell has what it runs in the background ignore Ctrl-C, and so do all its children; here it is sent on purpose.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


OUTSIDE = (
    "OPENAI_", "ANTHROPIC_", "PYTEST_FAIRNESS_", "PYTEST_ADDOPTS", "GITHUB_", "GITLAB_", "BUILD_", "CIRCLE_", "GIT_",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on, or reaches, what the environment of its user names."""
    for name in list(os.environ):
        if name.startswith(OUTSIDE) or name == "CI":
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """An empty project of a user, with an application to audit in `app.py`."""
    return Project(pytester)


@pytest.fixture(scope="session")
def regard_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small text classifier with real weights."""
    from tests.support.classifiers import train

    return train(tmp_path_factory.mktemp("models") / "regard")
