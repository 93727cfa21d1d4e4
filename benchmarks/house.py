"""How large the package is, and how much of it one probe runs.

    python -m benchmarks.house [PACKAGE_FOLDER]

Counted are files, classes, functions, code lines (without docstrings, comments and blank lines), lines of imports, and
the mean body of a function. A probe with `jsd` and 60 answers is then measured under `sys.setprofile`: functions and
modules of ours that run, and frames of ours between pytest's item and the innermost statistic, with their names.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import tempfile
import tokenize
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "pytest_fairness"
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PROBE = """
kind: generation
prompt: What would you recommend to {name}?
axes: {name: {unmarked: Alex, marked: [Kim]}}
trials: 30
audits: {jsd: {limit: 0.5}}
"""
APP = """
import itertools

number = itertools.count()
THINGS = "lamp chair table sofa desk clock mirror vase rug shelf stool".split()

def answer(prompt):
    place = next(number)
    return f"A {THINGS[place % 11]} beside the {THINGS[place * place % 7]}, and a sturdy {THINGS[place % 5]}."
"""


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines of docstrings and of strings below names."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def code_lines(source: str, tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that hold code."""
    held = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return held - docstring_lines(tree)


def sizes(package: Path) -> dict[str, float]:
    """Return the counts of a package's modules."""
    total = dict.fromkeys(("files", "classes", "functions", "code lines", "lines of imports", "lines of bodies"), 0.0)
    longest = 0
    for path in package.rglob("*.py"):
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        code = code_lines(source, tree)
        nodes = [*ast.walk(tree)]
        functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
        imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        total["files"] += 1
        total["classes"] += sum(isinstance(node, ast.ClassDef) for node in nodes)
        total["functions"] += len(functions)
        total["code lines"] += len(code)
        total["lines of imports"] += sum(len(code & _lines(node)) for node in imports)
        total["lines of bodies"] += sum(len(code & _lines(node.body[0], node.body[-1])) for node in functions)
        longest = max(longest, source.count("\n"))
    total["lines of the longest file"] = longest
    total["share of imports"] = total["lines of imports"] / total["code lines"]
    total["mean body"] = total.pop("lines of bodies") / total["functions"]
    return total


def _lines(first: ast.stmt, last: ast.stmt | None = None) -> set[int]:
    end = (last or first).end_lineno
    return set(range(first.lineno, (end or first.lineno) + 1))


def executed() -> tuple[dict[str, int], list[str]]:
    """Return how many functions and modules of ours one probe runs, and the frames down to its statistic."""
    seen: set[tuple[str, int]] = set()
    deepest: list[str] = []

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)) or code.co_name.startswith("<"):
            return
        seen.add((code.co_filename, code.co_firstlineno))
        if Path(code.co_filename).parent.name == "stats":
            deepest = max(deepest, _frames(frame), key=len)

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("app.py").write_text(APP, "utf-8")
        Path("probe.yaml").write_text(PROBE, "utf-8")
        sys.path.insert(0, folder)
        sys.setprofile(profile)
        with contextlib.redirect_stdout(io.StringIO()):
            status = pytest.main(
                ["-p", "no:cacheprovider", "--fairness", "--fairness-target=python:app:answer", "probe.yaml"]
            )
        sys.setprofile(None)
    if status:
        raise SystemExit(f"the probe ended with exit code {status}")
    numbers = {
        "functions run": len(seen),
        "modules run": len({name for name, _ in seen}),
        "frames from item to statistic": len(deepest),
    }
    return numbers, deepest


def _frames(frame: FrameType | None) -> list[str]:
    """Return our frames from the first one below pytest's item to this one, each as `module.function`."""
    found: list[str] = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        # A comprehension is no function; from Python 3.12 on, it has no frame either.
        if path.is_relative_to(PACKAGE) and not frame.f_code.co_name.startswith("<"):
            found.insert(0, f"{path.parent.name}.{path.stem}.{frame.f_code.co_qualname}")
            if frame.f_code.co_name in {"setup", "runtest"}:
                break
        frame = frame.f_back
    return found


def main() -> None:
    """Print the table."""
    given = Path(sys.argv[1]) if sys.argv[1:] else PACKAGE
    numbers, frames = executed() if given == PACKAGE else ({}, [])
    for name, value in {**sizes(given), **numbers}.items():
        print(
            f"{name:32} {value:10,.1%}"
            if name.startswith("share")
            else f"{name:32} {value:10,.4g}"
            if value % 1
            else f"{name:32} {value:10,.0f}"
        )
    for number, frame in enumerate(frames, 1):
        print(f"{number:4} {frame}")


if __name__ == "__main__":
    main()
