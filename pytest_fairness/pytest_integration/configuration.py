"""Settings of a run from the command line, the environment and the ini file, and commands that messages suggest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pytest

from pytest_fairness.option_types import in_folder
from pytest_fairness.options import DEFAULT_STORE, OPTIONS, PREFIX, REPLACED, SETTINGS, Option, RunSettings
from pytest_fairness.probes.diagnostics import nearest
from pytest_fairness.reports.formatting import shell_line
from pytest_fairness.reports.report_items import rebaseline_command
from pytest_fairness.targets.web import public_address

# Settings of a run, read from the command line, the environment and the ini file.

WITHOUT_VERDICTS = ("--fairness-measure", "--fairness-dry-run", "--fairness-shard", "--fairness-batch=submit")
"""Options of runs without verdicts."""
_BY_NAME = {option.name: option for option in SETTINGS}
_NAMED_TARGET = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99})\s*=\s*(?P<target>.+)", re.DOTALL)
"""Pattern of `NAME=TARGET`; `openai:gpt-5 base_url=…` does not match, because a name contains no colon."""


def _prefer_command_line(config: pytest.Config, *contrary: str) -> None:
    """Turn off options of `addopts` that contradict an option on the command line."""
    typed = [flag for flag in contrary if flag in config.invocation_params.args]
    for flag in contrary:
        if typed and flag not in typed:
            setattr(config.option, flag.removeprefix("--").replace("-", "_"), False)


def settings_from(config: pytest.Config) -> RunSettings:
    """Return the settings of the run.

    The command line has priority over the environment, the environment over the ini file, and the ini file over the
    defaults.
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
    batch = _value(config, _BY_NAME["fairness_batch"])
    if batch == "submit" and any(map(config.getoption, others)):
        raise pytest.UsageError(
            "--fairness-batch=submit only submits the requests. Run it without --fairness-replay, "
            "--fairness-rebaseline and --fairness-measure; give these options in a later run, when the batches have "
            "ended."
        )
    if batch == "collect" and config.getoption("fairness_replay"):
        raise pytest.UsageError(
            "--fairness-batch=collect downloads answers, but --fairness-replay does not. Give only one of them."
        )
    if _value(config, _BY_NAME["fairness_nightly_share"]) and not _value(config, _BY_NAME["fairness_history"]):
        raise pytest.UsageError(
            "fairness_nightly_share: a part of the answers decides only together with those of other nights. Name a "
            "history with fairness_history, or remove fairness_nightly_share."
        )
    if config.getoption("fairness_bundle") and _value(config, _BY_NAME["fairness_history"]):
        raise pytest.UsageError(
            "--fairness-bundle: a bundle holds one run, but with fairness_history verdicts rest on many. Write it in a "
            'run without a history (-o fairness_history="").'
        )
    if config.getoption("fairness_measure") and config.getoption("fairness_rebaseline"):
        raise pytest.UsageError(
            "--fairness-measure and --fairness-rebaseline cannot be combined. Look at the estimates with "
            "--fairness-measure first; then accept them as baselines with --fairness-rebaseline alone."
        )
    if config.getoption("fairness_control") and config.getoption("fairness_against") is None:
        raise pytest.UsageError(
            "--fairness-control asks the prompts and the target of another revision again. Name it with "
            "--fairness-against."
        )
    if config.getoption("fairness_against") == "":
        raise pytest.UsageError("--fairness-against is empty. Name a git revision, such as origin/main.")
    if config.getoption("fairness_against") is not None and any(map(config.getoption, others[1:])):
        raise pytest.UsageError(
            "--fairness-against judges by the baselines of a git revision, but --fairness-rebaseline and "
            "--fairness-measure give no verdicts. Run them separately."
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
        name, _, value = flag.partition("=")
        implied = ("--fairness-plan", "--fairness-selftest") if name == "--fairness-dry-run" else ()
        typed = any(each.partition("=")[0] in (name, *implied) for each in config.invocation_params.args)
        given = settings.batch if value else config.getoption(name.removeprefix("--").replace("-", "_"))
        if given and value in ("", given) and not typed:
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
    """Return whether the run makes no interim analyses: it makes baselines, gives no verdicts or has a control arm."""
    options = ("fairness_rebaseline", "fairness_measure", "fairness_shard", "fairness_control")
    without = any(map(config.getoption, options))
    return without or _value(config, _BY_NAME["fairness_batch"]) == "submit"


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
    for where, written in _set_values(config, option):
        try:
            value = option.type.parse(written)
        except ValueError as error:
            raise pytest.UsageError(f"{where} {error}") from error
        if value not in (None, ()):
            return value
    return None


def _set_values(config: pytest.Config, option: Option) -> Iterator[tuple[str, Any]]:
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


# Values of the ini file, and the file and line of each value.

ENVIRONMENT_PREFIX = "PYTEST_FAIRNESS_"
ENVIRONMENT: list[str] = [
    name for option in OPTIONS if (name := option.environment) and name.startswith(ENVIRONMENT_PREFIX)
]
"""Environment variables that the plugin reads and whose names begin with `ENVIRONMENT_PREFIX`."""
INI_NAMES = [option.name for option in OPTIONS if option.in_ini]


def ini(config: pytest.Config, option: Option) -> Any:
    """Return the ini file's value of an option, in the option's ini type; `None` if it is not set."""
    try:
        return config.getini(option.name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{place(config, option.name)} must be {option.type.takes}.") from error


def registered_marks(config: pytest.Config) -> list[str]:
    """Return the markers that the ini file registers; markers of pytest and its plugins are left out."""
    # `getini` would also return the markers of plugins. The attribute with the raw values was renamed in pytest 9.
    raw = config._inicfg if hasattr(config, "_inicfg") else config.inicfg
    written: Any = getattr(raw.get("markers"), "value", raw.get("markers")) or ()
    lines = written.splitlines() if isinstance(written, str) else written
    return [match[0].strip() for line in lines if (match := re.match(r"\s*\w+", str(line)))]


def place(config: pytest.Config, name: str) -> str:
    """Return where an ini value is set, for messages: `pytest.ini:4: fairness_timeout` or `-o fairness_timeout`.

    The result is only the name if the value is set in neither of these places.
    """
    for setting in config.getoption("override_ini", None) or ():
        if setting.partition("=")[0].strip() == name:
            return f"-o {name}"
    if config.inipath is None:
        return name
    lines = config.inipath.read_text("utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        if re.match(rf"""\s*["']?{name}["']?\s*[=:]""", line):
            return f"{relative_path(config.inipath, config.invocation_params.dir)}:{number}: {name}"
    return name


def require_known_names(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for unknown ini names and environment variables with the plugin's prefix.

    Otherwise a misspelt name would silently leave a setting, such as the target, at its default. Names that a conftest
    declares are accepted.
    """
    overridden = (setting.partition("=")[0].strip() for setting in config.getoption("override_ini", None) or ())
    # The public attribute `inicfg` gives a warning from pytest 9.1 on. No other attribute has undeclared names.
    written = getattr(config, "_inicfg", None)
    names = dict.fromkeys([*(config.inicfg if written is None else written), *overridden])
    errors = [
        f"{place(config, name)}: there is no such setting{_suggestion(name, PREFIX, INI_NAMES)}"
        for name in names
        if name.casefold().startswith(PREFIX) and name not in INI_NAMES and not _is_declared(config, name)
    ]
    for name in sorted(os.environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in ENVIRONMENT:
            setting = name.removeprefix("PYTEST_").casefold()
            hint = f"; set {setting} in the ini file instead" if setting in INI_NAMES else ""
            hint = hint or _suggestion(name, ENVIRONMENT_PREFIX, ENVIRONMENT)
            errors.append(f"{name}: pytest-fairness reads no environment variable of this name{hint}")
    if errors:
        raise pytest.UsageError("\n".join(errors))


def _suggestion(name: str, prefix: str, known: Sequence[str]) -> str:
    if name in REPLACED:
        return f" any more: {REPLACED[name]}"
    # Names are compared without their common prefix.
    near = nearest(name[len(prefix) :], [known_name.removeprefix(prefix) for known_name in known])
    return f": did you mean {prefix + near!r}?" if near else f"; the valid names are {', '.join(known)}"


def _is_declared(config: pytest.Config, name: str) -> bool:
    try:
        config.getini(name)
    except ValueError:
        return False
    return True


# Paths relative to a folder, as messages, node ids and commands show them.


def relative_path(path: PurePath, start: PurePath) -> PurePath:
    """Return the path from a folder to another path; the path itself if it is on another drive of Windows."""
    try:
        return Path(os.path.relpath(path, start))
    except ValueError:
        return path


# Shell commands that messages suggest; they work in the folder in which pytest was started.


def accept_command(
    config: pytest.Config,
    settings: RunSettings,
    nodeid: str,
    *,
    uses_default_target: bool,
    replay: bool,
) -> str:
    options = accept_options(config, settings, uses_default_target=uses_default_target, replay=replay)
    return shell_line(rebaseline_command([nodeid], options, root_from_here(config)) or [])


def export_command(config: pytest.Config, settings: RunSettings, path: Path) -> str:
    here = config.invocation_params.dir
    command = ["python", "-m", "pytest_fairness", "export", str(relative_path(path, here))]
    store = settings.store
    if store != here / DEFAULT_STORE:
        command += ["--store", str(relative_path(store, here) if isinstance(store, Path) else store)]
    return shell_line(command)


def accept_options(
    config: pytest.Config, settings: RunSettings, *, uses_default_target: bool, replay: bool = False
) -> list[str]:
    """Return the options with which a suggested command has the same settings as this run, without secrets."""
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
    name, equals, value = setting.partition("=")
    if name.strip() in ("fairness_http_headers", "fairness_api_headers"):
        return f"{name}{equals}…"
    return f"{name}{equals}{public_address(value)}" if "://" in value else setting


def _other_inipath(config: pytest.Config, probes: tuple[Path, ...]) -> PurePath | None:
    if config.inipath is None:
        return None
    if config.getoption("inifilename"):
        return Path(config.getoption("inifilename"))
    elsewhere = any(not path.is_relative_to(config.rootpath) for path in probes)
    return relative_path(config.inipath, config.invocation_params.dir) if elsewhere else None
