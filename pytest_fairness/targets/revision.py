"""Application of another git revision, which a process of its own imports from that revision's files."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.targets.python import ImportedTarget, open_python
from pytest_fairness.targets.shared import SharedTarget, TargetServer


class RevisionTarget(SharedTarget):
    """Target `python:package.module:callable` as a git revision has it.

    Args:
        spec: name of the target.
        settings: settings of the run.
        tree: folder with all files of the revision.
        top: root of the repository, in which the working tree has the same files.
        revision: the revision with its commit, for messages.
    """

    def __init__(self, spec: str, settings: RunSettings, tree: Path, top: Path, revision: str) -> None:
        super().__init__(open_python(spec.partition(":")[2], settings), "")
        self.name, self.identity = f"{self.name} of {revision}", f"{self.identity} of {revision}"

        def of_revision(path: Path) -> Path:
            return tree / os.path.relpath(path.resolve(), top)

        # Folders of the working tree from which Python imports, such as `src`, have their counterparts first.
        known = [Path(path).resolve() for path in sys.path if path]
        paths = [of_revision(path) for path in known if path.is_relative_to(top)]
        here = of_revision(Path.cwd()) if Path.cwd().resolve().is_relative_to(top) else tree
        root = of_revision(settings.root)
        self._folder = here if here.is_dir() else root
        self._command = [
            *(sys.executable, "-P", "-m", __name__, spec, str(root), str(tree), revision),
            *(str(path) for path in paths if path.is_dir()),
        ]
        self._process: subprocess.Popen[str] | None = None

    def check(self) -> None:
        """Check nothing: the application must not be imported into this process."""

    async def open(self) -> None:
        """Start the process, and wait until it has imported the application."""
        await asyncio.to_thread(self._start)
        await super().open()

    async def close(self) -> None:
        await super().close()
        process, self._process = self._process, None
        if process is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()  # type: ignore[union-attr] # a pipe
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, 5)
            process.kill()
            process.stdout.close()  # type: ignore[union-attr] # a pipe

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this package, with the user's own application
            self._command, cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._address = self._process.stdout.readline().strip()  # type: ignore[union-attr] # a pipe
        if not self._address:
            raise TargetError(f"{self.name}: its process ended before it answered. Its output says why.")


class _OwnFiles(ImportedTarget):
    def __init__(self, spec: str, root: Path, tree: Path, revision: str) -> None:
        _, module, attribute = spec.split(":", 2)
        super().__init__(module, attribute, RunSettings(root=root))
        self._tree, self._revision = tree.resolve(), revision

    def check(self) -> None:
        """Check the application, and that its module is one of the revision's files."""
        super().check()
        with suppress(TypeError):  # a module without a file
            file = inspect.getfile(sys.modules[self._module])
            if Path(file).resolve().is_relative_to(self._tree):
                return
        raise TargetError(
            f"{self.name}: Python imports {self._module} from outside of the files of {self._revision}, so that the "
            "control arm would ask other code. Add the folder of the application's source code to pytest's ini option "
            "`pythonpath`, or run without --fairness-control."
        )


def main() -> None:
    """Serve the application that the command line names, until the standard input ends."""
    spec, root, tree, revision, *paths = sys.argv[1:]
    sys.path[:0] = paths
    with TargetServer(_OwnFiles(spec, Path(root), Path(tree), revision)) as server:
        sys.stdout.write(f"{server.address}\n")
        sys.stdout.flush()
        os.dup2(2, 1)  # the application may print
        sys.stdin.read()


if __name__ == "__main__":
    main()
