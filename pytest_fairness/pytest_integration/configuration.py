"""Settings of a run, read from the command line, the environment and the ini file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.option_types import in_folder
from pytest_fairness.options import SETTINGS, Option, RunSettings
from pytest_fairness.pytest_integration.ini import ini, place
from pytest_fairness.pytest_integration.relative_paths import relative_path
from pytest_fairness.targets.web.address import public_address

WITHOUT_VERDICTS = ("--fairness-measure", "--fairness-dry-run", "--fairness-shard", "--fairness-batch-submit")
"""Options of runs without verdicts."""
_BY_NAME = {option.name: option for option in SETTINGS}
_NAMED_TARGET = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99})\s*=\s*(?P<target>.+)", re.DOTALL)
"""Pattern of `NAME=TARGET`; `openai:gpt-5 base_url=…` does not match, because a name contains no colon."""


def _prefer_command_line(config: pytest.Config, *contrary: str) -> None:
    """Turn off options of `addopts` that contradict an option on the command line.

    Args:
        config: pytest's configuration.
        *contrary: flags that contradict each other.
    """
    typed = [flag for flag in contrary if flag in config.invocation_params.args]
    for flag in contrary:
        if typed and flag not in typed:
            setattr(config.option, flag.removeprefix("--").replace("-", "_"), False)


def settings_from(config: pytest.Config) -> RunSettings:
    """Return the settings of the run.

    The command line has priority over the environment, the environment over the ini file, and the ini file over the
    defaults.

    Raises:
        pytest.UsageError: options contradict each other, or a value is invalid; the message says where it is set.
    """
    _prefer_command_line(config, "--fairness-fresh", "--fairness-replay")
    if config.getoption("fairness_fresh") and config.getoption("fairness_replay"):
        raise pytest.UsageError(
            "--fairness-fresh sends every request again, but --fairness-replay sends none. Give only one of them."
        )
    others = ("fairness_replay", "fairness_rebaseline", "fairness_measure")
    if config.getoption("fairness_shard") is not None and any(map(config.getoption, others)):
        raise pytest.UsageError(
            "--fairness-shard only sends a part of the requests. Run it without --fairness-replay, "
            "--fairness-rebaseline and --fairness-measure; give these options in a separate run after all shards have "
            "sent their requests."
        )
    if config.getoption("fairness_batch_submit") and any(map(config.getoption, (*others, "fairness_batch_collect"))):
        raise pytest.UsageError(
            "--fairness-batch-submit only submits the requests. Run it without --fairness-batch-collect, "
            "--fairness-replay, --fairness-rebaseline and --fairness-measure; give these options in a later run, when "
            "the batches have ended."
        )
    if config.getoption("fairness_batch_collect") and config.getoption("fairness_replay"):
        raise pytest.UsageError(
            "--fairness-batch-collect downloads answers, but --fairness-replay does not. Give only one of them."
        )
    if config.getoption("fairness_reason") is not None and not config.getoption("fairness_rebaseline"):
        raise pytest.UsageError(
            "--fairness-reason has no effect without --fairness-rebaseline. Add --fairness-rebaseline, or leave out "
            "--fairness-reason."
        )
    if config.getoption("fairness_measure") and config.getoption("fairness_rebaseline"):
        raise pytest.UsageError(
            "--fairness-measure and --fairness-rebaseline cannot be combined. Look at the estimates with "
            "--fairness-measure first; then accept them as baselines with --fairness-rebaseline alone."
        )
    target, targets = _targets(config)
    given: dict[str, Any] = {"target": target}
    for option in SETTINGS:
        if option.setting and option.setting != "target":
            given[option.setting] = _value(config, option)
    settings = RunSettings(
        root=_root(config),
        targets=targets,
        target_is_default=target is None,
        **{name: value for name, value in given.items() if value is not None},
    )
    settings = replace(
        settings,
        probes=tuple(absolute(settings.root / path) for path in settings.probes),
        baselines=settings.root / settings.baselines,
        store=in_folder(settings.root, settings.store),
    )
    if given["min_audits"] is None and (_in_ci() or any(path.exists() for path in settings.probes)):
        settings = replace(settings, min_audits=1)  # a run without audits then fails
    _require_verdicts(config, settings)
    if settings.shard is not None or settings.batch_submit:
        return replace(settings, min_audits=0)  # no audit runs
    return settings


def _require_verdicts(config: pytest.Config, settings: RunSettings) -> None:
    """Raise `pytest.UsageError` in CI if an option that gives no verdicts is set elsewhere than on the command line.

    Such an option in `addopts` or `PYTEST_ADDOPTS` would end with exit code 0 though the run must give verdicts.
    """
    if not (_in_ci() and settings.min_audits) or hasattr(config, "workerinput"):
        return
    for flag in WITHOUT_VERDICTS:
        typed = any(argument.partition("=")[0] == flag for argument in config.invocation_params.args)
        if config.getoption(flag.removeprefix("--").replace("-", "_")) and not typed:
            raise pytest.UsageError(
                f"{flag}: this CI run would give no verdicts, because addopts or PYTEST_ADDOPTS has the option, but "
                f"fairness_min_audits is {settings.min_audits}. Write the option on the command line of the step that "
                "needs no verdicts, or set fairness_min_audits = 0."
            )


def absolute(path: Path) -> Path:
    """Return the absolute path without `.` and `..`.

    Symbolic links are not resolved, as in the paths that pytest collects.
    """
    return Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow links


def root_from_here(config: pytest.Config) -> str:
    """Return the path from the folder in which pytest was started to pytest's rootdir (the root of node ids)."""
    return relative_path(config.rootpath, config.invocation_params.dir).as_posix()


def without_interim_analyses(config: pytest.Config) -> bool:
    """Return whether the run makes no interim analyses, because it makes baselines or gives no verdicts."""
    return any(
        map(config.getoption, ("fairness_rebaseline", "fairness_measure", "fairness_shard", "fairness_batch_submit"))
    )


def folder_in_repository(config: pytest.Config) -> str:
    """Return the path from the root of the repository to pytest's rootdir; empty if they are the same folder.

    The root of the repository is the folder that a CI service names in an environment variable, if this folder contains
    pytest's rootdir; if not, the nearest folder with `.git` that contains it. Without a root, the result is empty.
    """
    rootdir = config.rootpath
    of_ci = [Path(os.environ[name]) for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR") if os.environ.get(name)]
    roots = [root for root in of_ci if rootdir.is_relative_to(root)]
    roots += [folder for folder in (rootdir, *rootdir.parents) if (folder / ".git").exists()]
    folder = rootdir.relative_to(roots[0]).as_posix() if roots else "."
    return "" if folder == "." else folder


def _root(config: pytest.Config) -> Path:
    """Return the folder to which paths of the ini file are relative: pytest's rootdir.

    If neither a configuration file nor `--rootdir` determines pytest's rootdir, the rootdir depends on the arguments:
    `pytest probes/one.yaml` and `pytest` would use different baseline folders. If this rootdir is inside the folder in
    which pytest was started, return the folder in which pytest was started.
    """
    here = config.invocation_params.dir
    is_from_arguments = config.inipath is None and not config.getoption("rootdir")
    return here if is_from_arguments and config.rootpath.is_relative_to(here) else config.rootpath


def _value(config: pytest.Config, option: Option) -> Any:
    """Return an option's value, checked and converted, from the place with the highest priority; `None` if not set."""
    for where, written in _set_values(config, option):
        try:
            value = option.type.parse(written)
        except ValueError as error:
            raise pytest.UsageError(f"{where} {error}") from error
        if value not in (None, ()):
            return value
    return None


def _set_values(config: pytest.Config, option: Option) -> Iterator[tuple[str, Any]]:
    """Yield each place that sets an option (such as `--fairness-trials`), with the unparsed value, by priority."""
    if option.on_command_line and (value := config.getoption(option.name)) is not None:
        yield option.flag, value
    if option.environment and (value := os.environ.get(option.environment)):
        yield option.environment, value
    if option.in_ini and (value := ini(config, option)) not in (None, ""):
        yield place(config, option.name), value


def _targets(config: pytest.Config) -> tuple[str | None, dict[str, str]]:
    """Return the first target (`None` if no target is set), and the targets by name.

    The mapping by name is empty for a single target without a name.
    """
    for where, written in _set_values(config, _BY_NAME["fairness_target"]):
        lines = written if isinstance(written, str) else "\n".join(written)
        targets = [line.strip() for line in lines.splitlines() if line.strip()]
        if targets:
            return _first_and_named(where, targets)
    return None, {}


def _first_and_named(where: str, written: Sequence[str]) -> tuple[str, dict[str, str]]:
    targets: dict[str, str] = {}
    for target in written:
        match = _NAMED_TARGET.fullmatch(target)
        if match is None and len(written) == 1:
            return target, {}
        if match is None:
            raise pytest.UsageError(
                f"{where}: {public_address(target)!r} is one of {len(written)} targets and has no name. Write each "
                "target as NAME=TARGET."
            )
        if match["name"] in targets:
            raise pytest.UsageError(f"{where}: two targets are named {match['name']!r}. Rename one of them.")
        targets[match["name"]] = match["target"].strip()
    return next(iter(targets.values())), targets


def _in_ci() -> bool:
    return os.environ.get("CI", "").strip().casefold() not in ("", "0", "false", "no", "off")
