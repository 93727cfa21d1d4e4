"""Every benchmark runs; what it measures counts only where it is run by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["collection", "memory", "replay"])
def test_a_benchmark_runs(name: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert "at most" in found.stdout


def test_the_page_names_every_benchmark() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "timing"}
    assert [name for name in sorted(files) if f"`{name}`" not in page] == []
