"""Read-only access to the git repository of a folder, through the `git` command."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from pytest_fairness.errors import FairnessError

TIMEOUT = 60
"""Maximum duration of a git command in seconds."""


class GitError(FairnessError):
    """Failure of a `git` command, or absence of the program `git`."""


def git(folder: Path, *arguments: str) -> bytes:
    """Return the output of a git command that is run in a folder.

    Raises:
        GitError: git cannot be run, the command failed (the message is git's own, on one line), or it took longer than
            `TIMEOUT`.
    """
    try:
        done = subprocess.run(  # noqa: S603 - no shell; callers check what may come from users
            ["git", *arguments],  # noqa: S607 - the git that the user's shell finds
            cwd=folder,
            capture_output=True,
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed, or is not on the PATH") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise GitError(f"git cannot be run, or did not end ({error})") from error
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split()).removeprefix("fatal: ")
        raise GitError(said or f"git ended with the exit code {done.returncode}")
    return done.stdout


def commit_description(folder: Path) -> str | None:
    """Return the id of the checked-out commit, with a note on uncommitted changes; `None` if git finds no commit."""
    try:
        described = git(folder, "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty").decode("ascii").strip()
    except GitError:
        return None
    commit = described.removesuffix("-dirty")
    return commit if commit == described else f"{commit} with uncommitted changes"


@cache
def ignoring_pattern(path: Path) -> str | None:
    """Return the place and pattern by which git ignores a file, as `.gitignore:3 *.gz`; `None` if git does not."""
    try:
        found = git(path.parent, "check-ignore", "--verbose", path.name).decode("utf-8", "replace")
    except GitError:
        return None
    file, line, pattern = found.partition("\t")[0].split(":", 2)
    return f"{file}:{line} {pattern}"


def user_name(folder: Path) -> str | None:
    """Return the setting `user.name` of git in a folder; `None` if it is not set or git cannot be run."""
    try:
        return git(folder, "config", "user.name").decode("utf-8", "replace").strip() or None
    except GitError:
        return None
