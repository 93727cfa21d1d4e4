"""One run's settings out of pytest's options, the environment and the ini file, each checked where it was written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.probes.growth import MAX_TRIALS
from pytest_fairness.pytest_integration.ini import ini, place
from pytest_fairness.reports import files
from pytest_fairness.settings import Price, RunSettings
from pytest_fairness.targets.address import public_address, public_target

DEFAULT_PROBES = "probes"
_NAMED_TARGET = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99})\s*=\s*(?P<target>.+)", re.DOTALL)
"""`NAME=TARGET`; in a target's own form an equals sign stands only after a colon."""


def settings_from(config: pytest.Config) -> RunSettings:
    """The settings, options before environment before ini file before defaults.

    Raises:
        pytest.UsageError: a value is no number, out of its range, or none of the words that are known.
    """
    if config.getoption("fairness_fresh") and config.getoption("fairness_replay"):
        raise pytest.UsageError("--fairness-fresh asks every question again, --fairness-replay none: give one of them.")
    root = _root(config)
    target, targets = _targets(config)
    probes = tuple(_collected(root / name) for name in ini(config, "fairness_probes") or [DEFAULT_PROBES])
    named = {
        "target": target,
        "targets": targets,
        "base_url": _text(config, "fairness_base_url", environment="OPENAI_BASE_URL"),
        "judge": _text(config, "fairness_judge"),
        "judge_base_url": _text(config, "fairness_judge_base_url"),
        "embeddings_base_url": _text(config, "fairness_embeddings_base_url"),
        "http_body": _text(config, "fairness_http_body"),
        "http_answer": _text(config, "fairness_http_answer"),
        "http_headers": tuple(ini(config, "fairness_http_headers") or ()),
        "target_version": _text(config, "fairness_target_version"),
        "concurrency": _whole_number(config, "fairness_concurrency"),
        "trials": _whole_number(config, "fairness_trials", in_file=False, most=MAX_TRIALS),
        "baselines": _path(config, "fairness_baselines"),
        "baseline_responses": ini(config, "fairness_baseline_responses", takes="true or false"),
        "store": _path(config, "fairness_store"),
        "max_age_hours": _number(config, "fairness_max_age", zero=True),
        "inconclusive": _warn_or_fail(config, "fairness_inconclusive"),
        "inconclusive_runs": _warn_or_fail(config, "fairness_inconclusive_runs"),
        "inconclusive_history": _whole_number(config, "fairness_inconclusive_history"),
        "min_audits": _min_audits(config, probes),
        "timeout": _number(config, "fairness_timeout"),
        "give_up": _number(config, "fairness_give_up"),
        "max_answer_bytes": _whole_number(config, "fairness_max_answer_bytes"),
        "max_requests": _whole_number(config, "fairness_max_requests"),
        "prices": _prices(config),
        "device": _text(config, "fairness_device"),
    }
    settings = RunSettings(
        root=root,
        fresh=config.getoption("fairness_fresh"),
        replay=config.getoption("fairness_replay"),
        probes=probes,
        target_is_default=target is None,
        **{name: value for name, value in named.items() if value is not None},
    )
    return replace(settings, baselines=root / settings.baselines, store=root / settings.store)


def accept_options(config: pytest.Config, default: str | None = None) -> list[str]:
    """The options of this command line that chose what was asked of whom, for a command that asks the same.

    Args:
        config: pytest's.
        default: the default target, where it was asked without being named; a new baseline takes its name.
    """
    options = []
    if (inipath := _other_inipath(config)) is not None:
        options += ["-c", str(inipath)]
    if config.getoption("rootdir"):
        options += ["--rootdir", config.getoption("rootdir")]
    for setting in config.getoption("override_ini") or ():
        options += ["-o", _public_setting(setting)]
    if config.getoption("markexpr"):
        # Or an expression in the ini would deselect what this command line selected.
        options += ["-m", config.getoption("markexpr")]
    options += [
        word
        for target in config.getoption("fairness_target")
        if target.strip()
        for word in ("--fairness-target", public_target(target))
    ]
    if default is not None:
        options += ["--fairness-target", default]
    for name in ("fairness_base_url", "fairness_trials"):
        value = config.getoption(name)
        if value:
            shown = public_address(value) if name == "fairness_base_url" else value
            options += ["--" + name.replace("_", "-"), shown]
    return options


def _public_setting(setting: str) -> str:
    """`NAME=VALUE` without what may be secret: the command stands in reasons, and they in reports."""
    name, equals, value = setting.partition("=")
    if name.strip() == "fairness_http_headers":
        return f"{name}{equals}…"
    return f"{name}{equals}{public_address(value)}" if "://" in value else setting


def _other_inipath(config: pytest.Config) -> Path | None:
    """The ini file, where pytest would not find it for a probe file that is named."""
    if config.inipath is None:
        return None
    if config.getoption("inifilename"):
        return Path(config.getoption("inifilename"))
    probes = (config.rootpath / name for name in ini(config, "fairness_probes") or [DEFAULT_PROBES])
    elsewhere = any(not _collected(path).is_relative_to(config.rootpath) for path in probes)
    return Path(os.path.relpath(config.inipath, config.invocation_params.dir)) if elsewhere else None


def root_from_here(config: pytest.Config) -> str:
    """Pytest's rootdir, to which node ids are relative, seen from where pytest was started."""
    return Path(os.path.relpath(config.rootpath, config.invocation_params.dir)).as_posix()


def report_paths(config: pytest.Config) -> list[Path]:
    """Where reports are to be written, relative to the folder pytest was started in like those of other plugins.

    Raises:
        pytest.UsageError: a suffix that no report has, or one whose format takes what is not installed.
    """
    paths = [config.invocation_params.dir / path for path in config.getoption("fairness_report")]
    for path in paths:
        try:
            files.require(path)
        except FairnessError as error:
            raise pytest.UsageError(str(error)) from error
    return paths


def _root(config: pytest.Config) -> Path:
    """What paths of the ini are relative to: pytest's rootdir.

    Without any configuration file that is wherever the arguments happen to lie, and `pytest probes/one.yaml` would keep
    its baselines elsewhere than `pytest`: there it is the folder that pytest was started in.
    """
    here = config.invocation_params.dir
    by_chance = config.inipath is None and not config.getoption("rootdir")
    return here if by_chance and config.rootpath.is_relative_to(here) else config.rootpath


def _text(config: pytest.Config, name: str, environment: str | None = None) -> str | None:
    option = config.getoption(name, default=None)
    value = option or (environment and os.environ.get(environment)) or ini(config, name)
    return str(value).strip() or None if value else None


def _targets(config: pytest.Config) -> tuple[str | None, dict[str, str]]:
    """Who is audited: one target without a name, or targets by name and the first of them."""
    where, written = "--fairness-target", [target for target in config.getoption("fairness_target") if target.strip()]
    if not written:
        where, text = "PYTEST_FAIRNESS_TARGET", os.environ.get("PYTEST_FAIRNESS_TARGET", "")
        if not text.strip():
            where, text = place(config, "fairness_target"), _lines(ini(config, "fairness_target"))
        written = text.splitlines()
    lines = [line.strip() for line in written if line.strip()]
    targets: dict[str, str] = {}
    for line in lines:
        match = _NAMED_TARGET.fullmatch(line)
        if match is None and len(lines) == 1:
            return line, {}
        if match is None:
            raise pytest.UsageError(
                f"{where}: {public_target(line)!r} is one of {len(lines)} targets and has no name; write each as "
                "NAME=TARGET."
            )
        if match["name"] in targets:
            raise pytest.UsageError(f"{where}: two targets are named {match['name']!r}.")
        targets[match["name"]] = match["target"].strip()
    return next(iter(targets.values()), None), targets


def _lines(value: str | Sequence[str] | None) -> str:
    return value if isinstance(value, str) else "\n".join(value or ())


def _collected(path: Path) -> Path:
    """The path as pytest writes what it collects: without dots, but with its links."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow links


def _path(config: pytest.Config, name: str) -> Path | None:
    written = _text(config, name)
    return Path(written) if written else None


def _whole_number(
    config: pytest.Config, name: str, *, in_file: bool = True, least: int = 1, most: int | None = None
) -> int | None:
    takes = f"a whole number from {least} on" if most is None else f"a whole number from {least} to {most:,}"
    where, value = _written(config, name, takes, in_file=in_file)
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < least or (most is not None and number > most):
        raise pytest.UsageError(f"{where} must be {takes}, not {value!r}.")
    return number


def _number(config: pytest.Config, name: str, *, zero: bool = False) -> float | None:
    takes = f"a number {'from 0 on' if zero else 'over 0'}"
    where, value = _written(config, name, takes)
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not (0 < number < float("inf") or (zero and number == 0)):
        raise pytest.UsageError(f"{where} must be {takes}, not {value!r}.")
    return number


def _written(config: pytest.Config, name: str, takes: str, *, in_file: bool = True) -> tuple[str, Any]:
    """Where a setting was written, and what; `None` where it was not."""
    option = config.getoption(name, default=None)
    if option is not None:
        return "--" + name.replace("_", "-"), option
    value = ini(config, name, takes=takes) if in_file else None
    return place(config, name), None if value in ("", None) else value


def _warn_or_fail(config: pytest.Config, name: str) -> str | None:
    value = _text(config, name)
    if value not in ("warn", "fail", None):
        raise pytest.UsageError(f"{place(config, name)} must be warn or fail, not {value!r}.")
    return value


def _min_audits(config: pytest.Config, probes: Sequence[Path]) -> int:
    """Return the configured number; by default 1 where there are probe folders or in CI, so that no run is empty."""
    number = _whole_number(config, "fairness_min_audits", least=0)
    if number is not None:
        return number
    in_ci = os.environ.get("CI", "").strip().casefold() not in ("", "0", "false", "no", "off")
    return int(in_ci or any(path.exists() for path in probes))


def _prices(config: pytest.Config) -> tuple[Price, ...]:
    prices: dict[str, Price] = {}
    where = place(config, "fairness_prices")
    for line in ini(config, "fairness_prices") or ():
        *model, prompt, completion = line.split() if len(line.split()) > 2 else ("", "", "")
        try:
            price = Price(" ".join(model), float(prompt), float(completion))
        except ValueError:
            price = Price("", -1, -1)
        if not (price.model and 0 <= price.prompt < float("inf") and 0 <= price.completion < float("inf")):
            raise pytest.UsageError(
                f"{where}: {line!r} is no line MODEL INPUT OUTPUT, with prices per million tokens from 0 on."
            )
        if price.model in prices:
            raise pytest.UsageError(f"{where}: {price.model!r} has two prices.")
        prices[price.model] = price
    return tuple(prices.values())
