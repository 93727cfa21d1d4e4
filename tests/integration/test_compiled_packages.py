"""Compiled packages, which crash the process when they are loaded a second time, stay loaded after a run in a test."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from tests.support.projects import Project


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra `transformers`")
def test_torch_stays_imported_after_a_run_that_imports_it(project: Project) -> None:
    project.write("test_torch.py", "def test_torch():\n    import torch\n")
    assert project.run("test_torch.py", target=None).ret == 0
    assert "torch" in sys.modules
