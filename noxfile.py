"""Test matrix: the oldest and the newest versions of all dependencies, on every Python that is installed.

    nox                              all sessions
    nox -s lowest -- tests/unit      one session, with arguments of pytest

Warnings are errors in every session (`filterwarnings` in `pyproject.toml`).
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
PLUGINS = (
    "allure-pytest", "pytest-benchmark", "pytest-evals", "pytest-forked", "pytest-html", "pytest-picked",
    "pytest-repeat", "pytest-rich",
    "pytest-socket", "pytest-sugar", "pytest-testmon", "teamcity-messages",
)  # fmt: skip
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def run(session: nox.Session, resolution: str) -> None:
    """Install the project with its dependencies, and run the tests that are not slow."""
    session.install("--resolution", resolution, "-e", ".[test]")
    session.run("pytest", "-m", "not slow", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """Test the lowest versions that `pyproject.toml` allows."""
    run(session, "lowest-direct")


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """Test the newest versions."""
    run(session, "highest")


@nox.session(python="3.11")
def plugins(session: nox.Session) -> None:
    """Test the plugin beside other pytest plugins, of which the extra `test` has none, as they change every run."""
    session.install("-e", ".[test]", *PLUGINS)
    no = (f"-pno:{name}" for name in ("sugar", "harvest", "evals", "testmon"))
    session.run("pytest", *no, "tests/integration/test_other_plugins.py", *session.posargs)
