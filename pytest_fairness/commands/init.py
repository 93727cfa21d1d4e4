"""Command `init`: a first probe and a CI workflow for a project."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from collections.abc import Mapping
from importlib import resources, util
from pathlib import Path

from pytest_fairness.commands.shared.configuration import CONFIGURATIONS
from pytest_fairness.commands.shared.own_requirement import own_requirement
from pytest_fairness.errors import FairnessError

PROBES = "probes"
SERVICES = ("github", "gitlab")
REQUIREMENTS = ("requirements-test.txt", "requirements-dev.txt", "requirements.txt")
GITLAB, GITLAB_JOB = Path(".gitlab-ci.yml"), Path(".gitlab/fairness.yml")
NOT_INSTALLABLE = "pytest-fairness was installed from a folder or file of the machine on which init ran"
INCLUDE = f"include:\n  - local: {GITLAB_JOB.as_posix()}\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--ci",
        choices=(*SERVICES, "none"),
        help="write a workflow for this CI service (default: the service that the folder's files or git remotes show; "
        "if they show none, both services); `none` writes no workflow",
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def run(arguments: argparse.Namespace) -> None:
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
    """Return the names of the CI services for which `init` writes a workflow; `option` is the value of `--ci`.

    Raises:
        FairnessError: this folder is not the root of its repository, where the services expect workflows.
    """
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
    """Return the hosts of the remotes in a git configuration file."""
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
    """Write the files and print their names; return the names of the files that now have the new content.

    Raises:
        FairnessError: a file cannot be written.
    """
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
    """Return the name of pytest's configuration file, and the target that the file sets (`None` without a target)."""
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
