"""Settings of pytest's configuration file, for commands that run without pytest."""

from __future__ import annotations

import configparser
import os
import tomllib
from pathlib import Path
from typing import Any

from pytest_fairness.errors import FairnessError
from pytest_fairness.option_types import SCORERS, STORE, StoreAddress, in_folder
from pytest_fairness.options import DEFAULT_STORE, RunSettings

STORE_VARIABLE = "PYTEST_FAIRNESS_STORE"

CONFIGURATIONS = {
    "pytest.toml": "[pytest]",
    ".pytest.toml": "[pytest]",
    "pytest.ini": "[pytest]",
    ".pytest.ini": "[pytest]",
    "pyproject.toml": "[tool.pytest.ini_options]",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
"""Pytest's configuration files in the order in which pytest looks for them, each with the heading of its settings."""


def configured_baselines() -> Path:
    """Return the folder of baselines that a run of pytest in the working directory would use."""
    root, settings = _configuration()
    return root / (str(settings.get("fairness_baselines", "")).strip() or RunSettings(root).baselines)


def configured_store() -> StoreAddress:
    """Return the address of the store that a run of pytest in the working directory would use.

    Raises:
        FairnessError: the environment variable or the ini option holds no valid address.
    """
    root, settings = _configuration()
    for name, written in (
        (STORE_VARIABLE, os.environ.get(STORE_VARIABLE, "")),
        ("fairness_store", str(settings.get("fairness_store", ""))),
    ):
        try:
            address = STORE.parse(written)
        except ValueError as error:
            raise FairnessError(f"{name} {error}") from error
        if address is not None:
            return in_folder(root, address)
    return root / DEFAULT_STORE


def configured_scorers() -> dict[str, str]:
    """Return the scorers that a run of pytest in the working directory would know; see `scorers.registry.known`.

    Raises:
        FairnessError: the ini option is invalid, or two scorers have the same name.
    """
    # Imported here, because few commands score answers.
    from pytest_fairness.scorers.registry import known

    return known(dict(declared_scorers()))


def declared_scorers() -> tuple[tuple[str, str], ...]:
    """Return the scorers in the ini file, each with its definition.

    Raises:
        FairnessError: the ini option is invalid, or names a scorer twice.
    """
    _, settings = _configuration()
    written = settings.get("fairness_scorers", ())
    try:
        return tuple(SCORERS.parse(written.splitlines() if isinstance(written, str) else written))
    except ValueError as error:
        raise FairnessError(f"fairness_scorers {error}") from error


def configured_text(name: str) -> str | None:
    """Return the text of the ini option with this name; `None` if it is absent or empty."""
    return str(_configuration()[1].get(name, "")).strip() or None


def project_root() -> Path:
    """Return the folder of pytest's configuration file; without a file, the working directory."""
    return _configuration()[0]


def _configuration() -> tuple[Path, dict[str, Any]]:
    here = Path.cwd()
    for folder in (here, *here.parents):
        for file in CONFIGURATIONS:
            settings = _settings(folder / file)
            if settings is not None:
                return folder, settings
    return here, {}


def _settings(path: Path) -> dict[str, Any] | None:
    """Return the settings of pytest that a file holds; `None` if pytest would not use the file as its configuration."""
    own = path.name.lstrip(".").startswith("pytest.")  # pytest uses such a file even without the heading
    try:
        text = path.read_text("utf-8", "replace")
        if path.suffix == ".toml":
            tables = tomllib.loads(text)
            if own:
                return dict(tables.get("pytest", {}))
            table = tables.get("tool", {}).get("pytest")
            return None if table is None else {**table, **table.get("ini_options", {})}
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(text)
    except (OSError, ValueError, configparser.Error):
        return None
    section = CONFIGURATIONS[path.name].strip("[]")
    return dict(parser[section]) if section in parser else {} if own else None
