"""Check that the plugin can be installed beside other libraries without a downgrade of any package.

Each library is resolved to its newest version twice: alone, and together with the plugin. A package that is older
with the plugin is printed, and the exit status is 1. Nothing is installed. Needs `uv` and a package index:

    python .ci/resolve.py [LIBRARY …]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packaging.version import Version

LIBRARIES = (
    "langchain-openai",
    "litellm",
    "crewai",
    "guardrails-ai",
    "llama-index",
    "deepeval",
    "ragas",
    "mlflow",
    "inspect-ai",
    "giskard",
    "langfair",
)
ROOT = Path(__file__).resolve().parent.parent


def resolved(library: str, *more: str) -> dict[str, Version]:
    """Return the version of each package that `uv` selects for a library.

    Args:
        library: a requirement.
        more: further arguments of `uv pip compile`.

    Raises:
        subprocess.CalledProcessError: the requirements contradict each other; its `stderr` says how.
    """
    command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", sys.executable, "-"]
    done = subprocess.run([*command, *more], input=library, text=True, capture_output=True, check=True)  # noqa: S603 - uv
    pins = [line.split(" ")[0].partition("==") for line in done.stdout.splitlines() if "==" in line]
    return {name: Version(version) for name, _, version in pins}


def main(libraries: tuple[str, ...]) -> int:
    """Print a line for each library, and return the exit status."""
    status = 0
    for library in libraries:
        alone = resolved(library)
        try:
            beside = resolved(library, str(ROOT / "pyproject.toml"))
        except subprocess.CalledProcessError as error:
            found = f"cannot be resolved: {error.stderr.strip()}"
        else:
            older = [name for name in alone if name in beside and beside[name] < alone[name]]
            found = ", ".join(f"{name} {alone[name]} → {beside[name]}" for name in older) or "no downgrade"
        status |= found != "no downgrade"
        print(f"{library} {alone[library]}: {found}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:]) or LIBRARIES))
