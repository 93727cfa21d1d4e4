"""Shell commands that messages suggest; they work in the folder in which pytest was started."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from pytest_fairness.options import DEFAULT_STORE, RunSettings
from pytest_fairness.pytest_integration.configuration import root_from_here
from pytest_fairness.pytest_integration.relative_paths import relative_path
from pytest_fairness.reports.shell_layout import shell_line
from pytest_fairness.reports.suggestions.shell_commands import rebaseline_command, with_reason
from pytest_fairness.targets.web.address import public_address


def accept_command(
    config: pytest.Config,
    settings: RunSettings,
    nodeid: str,
    *,
    uses_default_target: bool,
    replay: bool,
    replaces: bool,
) -> str:
    """Return the command that makes a new baseline of an item or a file.

    Args:
        config: pytest's configuration.
        settings: the run's settings.
        nodeid: node id of the item, or path of the file.
        uses_default_target: whether this run uses the default target, which the command must then name.
        replay: whether the command must contain `--fairness-replay`.
        replaces: whether there is a baseline to replace; the command then contains `--fairness-reason`.
    """
    options = accept_options(config, settings, uses_default_target=uses_default_target, replay=replay)
    command = rebaseline_command([nodeid], options, root_from_here(config)) or []
    return shell_line(with_reason(command) if replaces else command)


def export_command(config: pytest.Config, settings: RunSettings, path: Path) -> str:
    """Return the command that exports the recorded answers of a probe file."""
    here = config.invocation_params.dir
    command = ["python", "-m", "pytest_fairness", "export", str(relative_path(path, here))]
    store = settings.store
    if store != here / DEFAULT_STORE:
        command += ["--store", str(relative_path(store, here) if isinstance(store, Path) else store)]
    return shell_line(command)


def accept_options(
    config: pytest.Config, settings: RunSettings, *, uses_default_target: bool, replay: bool = False
) -> list[str]:
    """Return the options with which a suggested command has the same settings as this run, without secrets.

    Args:
        config: pytest's configuration.
        settings: the run's settings.
        uses_default_target: whether this run uses the default target, which the command must then name.
        replay: whether the command must contain `--fairness-replay`, so that it reuses the answers of this run.
    """
    options = []
    if (inipath := _other_inipath(config, settings.probes)) is not None:
        options += ["-c", str(inipath)]
    if config.getoption("rootdir"):
        options += ["--rootdir", config.getoption("rootdir")]
    for setting in config.getoption("override_ini") or ():
        options += ["-o", _public_setting(setting)]
    if config.getoption("markexpr"):
        # Otherwise an expression in the ini file could deselect the items.
        options += ["-m", config.getoption("markexpr")]
    for target in config.getoption("fairness_target"):
        if target.strip():
            options += ["--fairness-target", public_address(target)]
    if uses_default_target:
        options += ["--fairness-target", settings.target]
    if url := config.getoption("fairness_base_url"):
        options += ["--fairness-base-url", public_address(url)]
    if trials := config.getoption("fairness_trials"):
        options += ["--fairness-trials", trials]
    if replay:
        options.append("--fairness-replay")
    return options


def _public_setting(setting: str) -> str:
    """Return a setting `NAME=VALUE` without secrets, because reports show the suggested command."""
    name, equals, value = setting.partition("=")
    if name.strip() in ("fairness_http_headers", "fairness_api_headers"):
        return f"{name}{equals}…"
    return f"{name}{equals}{public_address(value)}" if "://" in value else setting


def _other_inipath(config: pytest.Config, probes: tuple[Path, ...]) -> PurePath | None:
    """Return the ini file that a command must name; `None` if there is none, or if pytest finds it by itself."""
    if config.inipath is None:
        return None
    if config.getoption("inifilename"):
        return Path(config.getoption("inifilename"))
    elsewhere = any(not path.is_relative_to(config.rootpath) for path in probes)
    return relative_path(config.inipath, config.invocation_params.dir) if elsewhere else None
