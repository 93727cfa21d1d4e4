"""Options of the command that accepts a result as the new baseline."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_fairness.options import RunSettings
from pytest_fairness.targets.address import public_address, public_target


def accept_options(config: pytest.Config, settings: RunSettings, *, asks_default: bool) -> list[str]:
    """Return the options of this command line that choose the target and the requests, without secrets.

    Args:
        config: pytest's.
        settings: the run's settings.
        asks_default: whether the default target is asked without being named; a new baseline needs its name.
    """
    options = []
    if (inipath := _other_inipath(config, settings.probes)) is not None:
        options += ["-c", str(inipath)]
    if config.getoption("rootdir"):
        options += ["--rootdir", config.getoption("rootdir")]
    for setting in config.getoption("override_ini") or ():
        options += ["-o", _public_setting(setting)]
    if config.getoption("markexpr"):
        # Or an expression in the ini would deselect what this command line selected.
        options += ["-m", config.getoption("markexpr")]
    for target in config.getoption("fairness_target"):
        if target.strip():
            options += ["--fairness-target", public_target(target)]
    if asks_default:
        options += ["--fairness-target", settings.target]
    if url := config.getoption("fairness_base_url"):
        options += ["--fairness-base-url", public_address(url)]
    if trials := config.getoption("fairness_trials"):
        options += ["--fairness-trials", trials]
    return options


def _public_setting(setting: str) -> str:
    """Return `NAME=VALUE` without secrets: the command is part of reasons, and reasons are part of reports."""
    name, equals, value = setting.partition("=")
    if name.strip() == "fairness_http_headers":
        return f"{name}{equals}…"
    return f"{name}{equals}{public_address(value)}" if "://" in value else setting


def _other_inipath(config: pytest.Config, probes: tuple[Path, ...]) -> Path | None:
    """Return the ini file, if pytest would not find it for a probe file that is named."""
    if config.inipath is None:
        return None
    if config.getoption("inifilename"):
        return Path(config.getoption("inifilename"))
    elsewhere = any(not path.is_relative_to(config.rootpath) for path in probes)
    return Path(os.path.relpath(config.inipath, config.invocation_params.dir)) if elsewhere else None
