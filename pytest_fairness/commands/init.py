"""Command `init`: a first probe, a schema for editors, and a CI workflow that runs as it is written."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from importlib import metadata, resources, util
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pytest_fairness.commands import CONFIGURATIONS
from pytest_fairness.errors import FairnessError

PROBES = "probes"
SERVICES = ("github", "gitlab")
REQUIREMENTS = ("requirements-test.txt", "requirements-dev.txt", "requirements.txt")
GITHUB, GITLAB, GITLAB_JOB = (
    Path(".github/workflows/fairness.yml"),
    Path(".gitlab-ci.yml"),
    Path(".gitlab/fairness.yml"),
)
INCLUDE = f"include:\n  - local: {GITLAB_JOB.as_posix()}\n"
IGNORE = Path(".gitignore")
REPORTS = ("fairness.html", "fairness.json", "fairness.comment.md", "fairness.codequality.json", "junit.xml")
NAME = "pytest-fairness"
EXTRAS = "[local,report]"
VENDORED = Path("vendor")
"""Folder of the project for a copy of the wheel from which this plugin was installed."""


def add_init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ci",
        choices=(*SERVICES, "none"),
        help="write a workflow for this CI service (default: the service that the folder's files or git remotes show; "
        "if they show none, a question on a terminal, and github elsewhere); `none` writes no workflow",
    )
    parser.add_argument(
        "--install",
        metavar="REQUIREMENT",
        help="requirement with which the workflow installs this plugin, such as a version, a repository or a wheel "
        "(default: where pip took this installation from)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def run_init(arguments: argparse.Namespace) -> None:
    """Write a first probe, a JSON Schema for editors and a CI workflow into the current folder, a project's root.

    Existing files stay unchanged, unless --force is given.
    """
    root = Path.cwd()
    service = _service(root, arguments.ci)
    probes = Path(PROBES)
    files = {probes / "first.yaml": _template("first.yaml"), probes / "probe.schema.json": _schema().encode()}
    includes, install = False, None
    if service is not None:
        requirement, wheel = (arguments.install, None) if arguments.install else _own_requirement(root)
        requirement = requirement or _answer(
            f"{NAME} was installed from a folder of this machine. Requirement with which CI installs it, such as "
            "git+https://…, the address of a wheel, or a file of this project (empty: no workflow)"
        )
        if requirement:
            install = shlex.join(["pip", "install", *_own_packages(root), requirement])
            text = _template(f"{service}.yml").replace(b"{install}", install.encode())
            files[GITHUB if service == "github" else GITLAB_JOB] = text
            includes = service == "gitlab" and (root / GITLAB).exists()
            if service == "gitlab" and not includes:
                files[GITLAB] = INCLUDE.encode()
        if wheel is not None:
            files[VENDORED / wheel.name] = wheel.read_bytes()
    written = _write(root, files, force=arguments.force)
    if install is not None:
        written += _ignore_reports(root)
        print(f"\nThe workflow installs with: {install}")
    elif service is not None:
        print(
            f"\nNo workflow was written: {NAME} was installed from a folder that other machines do not have. Name a "
            f"requirement of pip that CI can install:\npython -m pytest_fairness init --ci {service} --install "
            f"{shlex.quote(f'{NAME}{EXTRAS} @ git+https://…')}"
        )
    if includes and GITLAB_JOB.name not in (root / GITLAB).read_text("utf-8", "replace"):
        print(f"\n{GITLAB} exists and stays unchanged. Add these lines to it:\n\n{INCLUDE.rstrip()}")
    _print_next_steps(root, [*written, *([GITLAB] if includes else [])])


def _service(root: Path, option: str | None) -> str | None:
    """Return the CI service whose workflow is written: by option, files, git remotes or an answer; `None` for none."""
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if option == "none":
        return None
    if repository not in (None, root):
        folder, top = shlex.quote(str(root.relative_to(repository))), shlex.quote(str(repository))
        raise FairnessError(
            f"{folder} is not the root of its repository, and workflows belong in the root. Run `init` in the root, or "
            "run it here without a workflow:\n"
            f"cd {top} && python -m pytest_fairness init\npython -m pytest_fairness init --ci none"
        )
    if option is not None:
        return option
    files = {"github": (root / ".github").exists(), "gitlab": (root / GITLAB).exists()}
    hosts = " ".join(_hosts(root / ".git" / "config"))
    for found in ([name for name in SERVICES if files[name]], [name for name in SERVICES if name in hosts]):
        if len(found) == 1:
            return found[0]
    answer = _answer("CI service: github, gitlab or none? [github]")
    if answer is None:
        print("No file or git remote shows the CI service. For GitLab: python -m pytest_fairness init --ci gitlab\n")
    elif answer and answer not in (*SERVICES, "none"):
        raise FairnessError(f"{answer!r} is no known CI service. Answer github, gitlab or none, or use `--ci`.")
    return None if answer == "none" else answer or "github"


def _answer(question: str) -> str | None:
    """Return what the user types; `None` without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    try:
        return input(f"{question}: ").strip()
    except EOFError:
        return None


def _hosts(config: Path) -> list[str]:
    try:
        text = config.read_text("utf-8", "replace")
    except OSError:
        return []
    return re.findall(r"^\s*url\s*=\s*(?:\w+://)?(?:[^@/\s]*@)?([^:/\s]+)", text, re.MULTILINE)


def _own_requirement(root: Path) -> tuple[str | None, Path | None]:
    """Return the requirement with which pip installs this copy, and the wheel that the project needs for it.

    pip records in `direct_url.json` (PEP 610) the repository, archive or folder from which it installed the package. If
    there is no such file, pip installed the package from an index, and the requirement names the version. A wheel of
    this machine is copied into the project. The requirement is `None` if other machines cannot install this copy.
    """
    from pytest_fairness.targets.web import public_url

    distribution = metadata.distribution(NAME)
    text = distribution.read_text("direct_url.json")
    if not text:
        return f"{NAME}{EXTRAS}=={distribution.version}", None
    source = json.loads(text)
    url, folder = source["url"], source.get("subdirectory")
    if url.startswith("file:"):
        path = Path(url2pathname(urlsplit(url).path))
        if path.is_relative_to(root):
            return f"./{path.relative_to(root).as_posix()}{EXTRAS}", None
        if path.is_file():
            return f"./{(VENDORED / path.name).as_posix()}{EXTRAS}", path
        return _pushed_commit(path), None
    if not url.startswith(("https://", "http://", "ssh://")):
        return None, None
    # A user or password would be published with the workflow; `git@` in an address of SSH is neither.
    url = url if url.startswith("ssh://git@") else public_url(url)
    if (version := source.get("vcs_info")) is not None:
        url = f"{version['vcs']}+{url}@{version['commit_id']}"
    return f"{NAME}{EXTRAS} @ {url}{f'#subdirectory={folder}' if folder else ''}", None


def _pushed_commit(folder: Path) -> str | None:
    """Return the requirement of the current commit of a clone, if its remote `origin` has this commit."""
    from pytest_fairness.baselines.changes import git
    from pytest_fairness.targets.web import public_url

    try:
        url, commit, place = (
            git(folder, *arguments).decode().strip()
            for arguments in (("remote", "get-url", "origin"), ("rev-parse", "HEAD"), ("rev-parse", "--show-prefix"))
        )
        if not git(folder, "branch", "--remotes", "--contains", commit).strip():
            return None
    except (FairnessError, OSError):
        return None
    if (ssh := re.fullmatch(r"(?:ssh://)?git@([^:/]+)[:/](.+)", url)) is not None:
        url = f"https://{ssh[1]}/{ssh[2]}"
    if not url.startswith("https://"):
        return None
    part = f"#subdirectory={place.rstrip('/')}" if place else ""
    return f"{NAME}{EXTRAS} @ git+{public_url(url)}@{commit}{part}"


def _own_packages(root: Path) -> list[str]:
    """Return the arguments with which pip installs the project or its requirements."""
    for name in REQUIREMENTS:
        if (root / name).exists():
            return ["-r", name]
    return ["-e", "."] if _is_package(root / "pyproject.toml") else []


def _is_package(path: Path) -> bool:
    try:
        return "project" in tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False


def _template(name: str) -> bytes:
    return resources.files("pytest_fairness.commands").joinpath("templates", name).read_bytes()


def _schema() -> str:
    from pytest_fairness import kinds
    from pytest_fairness.probes import schema_text

    return schema_text(kinds.schemas())


def _write(root: Path, files: Mapping[Path, bytes], *, force: bool) -> list[Path]:
    written = []
    for name, content in files.items():
        path = root / name
        try:
            if path.exists() and not force and path.read_bytes() != content:
                print(f"{name} exists and stays unchanged; --force overwrites it")
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise FairnessError(
                f"{name}: cannot be written ({error.strerror}). Check the path and its permissions."
            ) from error
        print(f"wrote {name}")
        written.append(name)
    return written


def _ignore_reports(root: Path) -> list[Path]:
    """Add the workflow's reports to `.gitignore`; return the file if it changed."""
    path = root / IGNORE
    try:
        known = path.read_text("utf-8", "replace") if path.exists() else ""
        missing = [name for name in REPORTS if name not in known.split()]
        if not missing:
            return []
        lines = [*([known.rstrip("\n")] if known else []), "# Reports of pytest-fairness", *missing]
        path.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    except OSError as error:
        raise FairnessError(f"{IGNORE}: cannot be written ({error.strerror}). Check its permissions.") from error
    print(f"wrote {IGNORE}")
    return [IGNORE]


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
