"""Commands on probes: `init`, `schema`, `swaps` and `calibrate`."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from importlib import resources, util
from pathlib import Path

from pytest_fairness.commands import CONFIGURATIONS, configured_scorers, own_requirement, project_root, write
from pytest_fairness.errors import FairnessError

PROBES = "probes"
SERVICES = ("github", "gitlab")
REQUIREMENTS = ("requirements-test.txt", "requirements-dev.txt", "requirements.txt")
GITLAB, GITLAB_JOB = Path(".gitlab-ci.yml"), Path(".gitlab/fairness.yml")
NOT_INSTALLABLE = "pytest-fairness was installed from a folder or file of the machine on which init ran"
INCLUDE = f"include:\n  - local: {GITLAB_JOB.as_posix()}\n"


def add_init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ci",
        choices=(*SERVICES, "none"),
        help="write a workflow for this CI service (default: the service that the folder's files or git remotes show; "
        "if they show none, both services); `none` writes no workflow",
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def run_init(arguments: argparse.Namespace) -> None:
    """Write a first probe, a JSON Schema for editors and a CI workflow into the current folder, a project's root.

    Existing files stay unchanged, unless --force is given.
    """
    root = Path.cwd()
    services = _services(root, arguments.ci)
    probes = Path(PROBES)
    files = {probes / "first.yaml": _template("first.yaml"), probes / "probe.schema.json": _schema()}
    includes = False
    for service in services:
        text = _template(f"{service}.yml").replace("{install}", _install_command(root))
        if service == "github":
            files[Path(".github/workflows/fairness.yml")] = text
        else:
            files[GITLAB_JOB] = text
            includes = (root / GITLAB).exists()
            if not includes:
                files[GITLAB] = INCLUDE
    written = _write(root, files, force=arguments.force)
    if includes and GITLAB_JOB.name not in (root / GITLAB).read_text("utf-8", "replace"):
        print(f"\n{GITLAB} exists and stays unchanged. Add these lines to it:\n\n{INCLUDE.rstrip()}")
    if len(services) > 1:
        print("\nThere are workflows for two CI services: delete the workflow of the service that you do not use.")
    if services and own_requirement() is None:
        print(f"\n{NOT_INSTALLABLE}. Replace the install command of the workflow, which fails until then.")
    _print_next_steps(root, [*written, *([GITLAB] if includes else [])])


def _services(root: Path, option: str | None) -> list[str]:
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if option == "none":
        return []
    if repository not in (None, root):
        folder, top = shlex.quote(str(root.relative_to(repository))), shlex.quote(str(repository))
        raise FairnessError(
            f"{folder} is not the root of its repository, and workflows belong in the root. Run `init` in the root, or "
            "run it here without a workflow:\n"
            f"cd {top} && python -m pytest_fairness init\npython -m pytest_fairness init --ci none"
        )
    if option is not None:
        return [option]
    found = {"github": (root / ".github").exists(), "gitlab": (root / GITLAB).exists()}
    if not any(found.values()):
        hosts = " ".join(_hosts(root / ".git" / "config"))
        found = {service: service in hosts for service in SERVICES}
    return [service for service in SERVICES if found[service]] or list(SERVICES)


def _hosts(config: Path) -> list[str]:
    try:
        text = config.read_text("utf-8", "replace")
    except OSError:
        return []
    return re.findall(r"^\s*url\s*=\s*(?:\w+://)?(?:[^@/\s]*@)?([^:/\s]+)", text, re.MULTILINE)


def _install_command(root: Path) -> str:
    """Return the shell command that installs this plugin, and the project or its requirements.

    If this copy of the plugin cannot be installed on other machines, the returned command prints an error and fails.
    """
    own: list[str] = []
    for name in REQUIREMENTS:
        if (root / name).exists():
            own = ["-r", name]
            break
    else:
        if _is_package(root / "pyproject.toml"):
            own = ["-e", "."]
    requirement = own_requirement()
    if requirement is None:
        advice = "Replace this line by a command that installs pytest-fairness from a package index or repository"
        text = f"{NOT_INSTALLABLE}. {advice}"
        return f"echo {shlex.quote(text)} && exit 1"
    return shlex.join(["pip", "install", *own, requirement])


def _is_package(path: Path) -> bool:
    try:
        return "project" in tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False


def _template(name: str) -> str:
    return resources.files("pytest_fairness.commands").joinpath("templates", name).read_text("utf-8")


def _schema() -> str:
    from pytest_fairness import kinds
    from pytest_fairness.probes import schema_text

    return schema_text(kinds.schemas())


def _write(root: Path, files: Mapping[Path, str], *, force: bool) -> list[Path]:
    written = []
    for name, text in files.items():
        path = root / name
        try:
            if path.exists() and not force and path.read_bytes() != text.encode():
                print(f"{name} exists and stays unchanged; --force overwrites it")
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="\n")
        except OSError as error:
            raise FairnessError(
                f"{name}: cannot be written ({error.strerror}). Check the path and its permissions."
            ) from error
        print(f"wrote {name}")
        written.append(name)
    return written


def _configuration(root: Path) -> tuple[str, str | None]:
    for name, heading in CONFIGURATIONS.items():
        try:
            text = (root / name).read_text("utf-8", "replace")
        except OSError:
            continue
        if heading in text or name.lstrip(".").startswith("pytest."):
            found = re.search(r"^[ \t]*fairness_target[ \t]*=\s*(\S.*)", text, re.MULTILINE)
            return name, found[1].strip() if found else None
    return "pyproject.toml", None


def _print_next_steps(root: Path, written: list[Path]) -> None:
    configuration, target = _configuration(root)
    if target is not None:
        print(f"\nThe target to audit is set in {configuration}: {target}")
    else:
        local = '"local"' if configuration.endswith(".toml") else "local"
        print(f"\nSet the target to audit in {configuration} (`local` is the embedded model):")
        print(f"{CONFIGURATIONS[configuration]}\nfairness_target = {local}")
    if target in (None, "local", '"local"') and util.find_spec("xllamacpp") is None:
        print('The embedded model needs another package:\npip install "pytest-fairness[local]"')
    print(f"Then run the audit:\npytest --fairness {PROBES}/first.yaml")
    print("Make the measured values the baseline, and commit them:\npytest --fairness-rebaseline")
    print(
        shlex.join(["git", "add", *sorted({path.parts[0] for path in written} | {PROBES, "baselines", configuration})])
    )


def add_schema_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments, because the command takes no arguments."""


def run_schema(_arguments: argparse.Namespace) -> None:
    """Print the JSON Schema of probe files."""
    from pytest_fairness import kinds
    from pytest_fairness.probes import schema_text

    print(schema_text(kinds.schemas()).rstrip())


SUFFIXES = (".csv", ".md")


def add_swaps_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("probe", type=Path, help="probe file with the key `swap`")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help="file to write, which ends in .csv or .md (default: text on standard output)",
    )


def run_swaps(arguments: argparse.Namespace) -> None:
    """Show each prompt of a probe with its swapped versions, one for each group.

    A prompt that cannot be swapped is shown with the reason. No request is sent.
    """
    from pytest_fairness import kinds, probes
    from pytest_fairness.probes import GenerationProbe
    from pytest_fairness.reports import command_output

    output: Path | None = arguments.output
    if output is not None and output.suffix.casefold() not in SUFFIXES:
        raise FairnessError(f"{output}: the name of the file must end in {' or '.join(SUFFIXES)}.")
    probe = probes.load(arguments.probe, kinds.schemas(), root=project_root(), scorers=configured_scorers())
    if not isinstance(probe, GenerationProbe) or probe.swap_lists is None:
        raise FairnessError(
            f"{arguments.probe}: the probe has no key `swap`, so there are no swapped prompts to list. Add `swap` to "
            "the probe, or name another probe."
        )
    groups = probe.swap_lists.axis.values
    if output is None:
        width = shutil.get_terminal_size().columns
        lines = command_output.swaps_as_text(probe.swapped, groups, width)
        write((f"{line}\n" for line in lines), None)
        return
    if output.suffix.casefold() == ".csv":
        write([command_output.swaps_as_csv(probe.swapped, groups)], output)
    else:
        write((f"{line}\n" for line in command_output.swaps_as_markdown(probe.swapped, groups)), output)
    print(
        "; ".join(
            [
                f"{output}: {command_output.swaps_summary(probe.swapped)[0]}",
                *command_output.swaps_summary(probe.swapped)[1:],
            ]
        )
    )


def add_calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "labelled",
        type=Path,
        help="CSV or JSON Lines file of outputs: the columns that the probe's kind needs, and a column `label`",
    )
    parser.add_argument("--probe", type=Path, required=True, help="probe file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run_calibrate(arguments: argparse.Namespace) -> None:
    """Measure the audits of a probe on outputs that are labelled `acceptable` or `problematic`.

    For each audit, print the error rates of the probe's limit and of other limits, and recommend a limit with few false
    positives and few false negatives, if there is one.
    """
    from pytest_fairness import kinds, probes
    from pytest_fairness.reports import command_output
    from pytest_fairness.run.answer_files import calibrate

    probe = probes.load(arguments.probe, kinds.schemas(), root=project_root(), scorers=configured_scorers())
    calibrations = [result.to_json() for result in calibrate(probe, arguments.labelled)]
    print(json.dumps(calibrations, indent=2) if arguments.json else command_output.calibration_text(calibrations))
