"""`python -m pytest_fairness init`: a first probe and a CI workflow, written into a project."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from collections.abc import Mapping
from importlib import metadata, resources, util
from pathlib import Path

from pytest_fairness.errors import FairnessError

PROBES = "probes"
SERVICES = ("github", "gitlab")
REQUIREMENTS = ("requirements-test.txt", "requirements-dev.txt", "requirements.txt")
GITLAB, GITLAB_JOB = Path(".gitlab-ci.yml"), Path(".gitlab/fairness.yml")
INCLUDE = f"include:\n  - local: {GITLAB_JOB.as_posix()}\n"


def declare(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "--ci",
        choices=(*SERVICES, "none"),
        help="whose workflow to write (default: as the folder and its git remotes show; both where they show none)",
    )
    parser.add_argument("--force", action="store_true", help="write over files that are there already")


def run(chosen: argparse.Namespace) -> None:
    """Write a first probe, its schema for editors and a CI workflow into this folder, the root of a project.

    What is there already stays as it is, unless --force is given.
    """
    root = Path.cwd()
    services = _services(root, chosen.ci)
    probes = Path(PROBES)
    files = {probes / "first.yaml": _template("first.yaml"), probes / "probe.schema.json": _schema()}
    includes = False
    for service in services:
        text = _template(f"{service}.yml").replace("{install}", _install(root))
        if service == "github":
            files[Path(".github/workflows/fairness.yml")] = text
        else:
            files[GITLAB_JOB] = text
            includes = (root / GITLAB).exists()
            if not includes:
                files[GITLAB] = INCLUDE
    written = _write(root, files, force=chosen.force)
    if includes and GITLAB_JOB.name not in (root / GITLAB).read_text("utf-8", "replace"):
        print(f"\n{GITLAB} stays as it is. Add to it:\n\n{INCLUDE.rstrip()}")
    if services and (metadata.distribution("pytest-fairness").read_text("direct_url.json") or "") != "":
        # What pip writes where it installed from a folder, a file or a repository.
        print(
            "\npytest-fairness was installed here from elsewhere than a package index: say in the workflow where it is."
        )
    _say_what_next([*written, *([GITLAB] if includes else [])])


def _services(root: Path, chosen: str | None) -> list[str]:
    """Whose workflows to write.

    Raises:
        FairnessError: this folder is not where the services would look for them.
    """
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if chosen == "none":
        return []
    if repository not in (None, root):
        here, there = shlex.quote(str(root.relative_to(repository))), shlex.quote(str(repository))
        raise FairnessError(
            f"{here} is not the root of its repository, where workflows lie. Run there, or leave the workflow out:\n"
            f"cd {there} && python -m pytest_fairness init\npython -m pytest_fairness init --ci none"
        )
    if chosen is not None:
        return [chosen]
    shown = {"github": (root / ".github").exists(), "gitlab": (root / GITLAB).exists()}
    if not any(shown.values()):
        hosts = " ".join(_hosts(root / ".git" / "config"))
        shown = {service: service in hosts for service in SERVICES}
    return [service for service in SERVICES if shown[service]] or list(SERVICES)


def _hosts(config: Path) -> list[str]:
    """The hosts of a git repository's remotes."""
    try:
        text = config.read_text("utf-8", "replace")
    except OSError:
        return []
    return re.findall(r"^\s*url\s*=\s*(?:\w+://)?(?:[^@/\s]*@)?([^:/\s]+)", text, re.MULTILINE)


def _install(root: Path) -> str:
    """The command that installs the project's own requirements, where it shows them, and this plugin."""
    own: list[str] = []
    for name in REQUIREMENTS:
        if (root / name).exists():
            own = ["-r", name]
            break
    else:
        if _is_package(root / "pyproject.toml"):
            own = ["-e", "."]
    return shlex.join(["pip", "install", *own, "pytest-fairness[local,report]"])


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
    """Write what is not there yet, and say so; what is the same already counts as written.

    Raises:
        FairnessError: a file cannot be written.
    """
    good = []
    for name, text in files.items():
        path = root / name
        try:
            if path.exists() and not force and path.read_bytes() != text.encode():
                print(f"{name} is there already, and stays as it is; --force replaces it")
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="\n")
        except OSError as error:
            raise FairnessError(f"{name}: cannot be written ({error.strerror}).") from error
        print(f"wrote {name}")
        good.append(name)
    return good


def _say_what_next(written: list[Path]) -> None:
    print("\nSay in pyproject.toml who is audited, unless it does already; `local` is the embedded model:")
    print('[tool.pytest.ini_options]\nfairness_target = "local"')
    if util.find_spec("xllamacpp") is None:
        print("The embedded model needs a package more:\npip install 'pytest-fairness[local]'")
    print(f"Next, audit it:\npytest --fairness {PROBES}/first.yaml")
    print("Then make what was measured the baseline, and commit it:\npytest --fairness-rebaseline")
    print(shlex.join(["git", "add", *sorted({path.parts[0] for path in written} | {PROBES, "baselines"})]))
