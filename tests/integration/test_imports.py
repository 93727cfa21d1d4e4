"""Modules after a run inside a test: those of the project are unloaded; all others stay, as compiled ones must."""

from __future__ import annotations

import sys

from tests.support.projects import Project


def test_only_modules_of_the_project_are_unloaded(project: Project) -> None:
    project.probe()
    project.write("folder/inside.py", "")
    project.write("test_own.py", "import folder.inside\nimport this\ndef test_passes(): pass\n")
    sys.modules.pop("this", None)
    project.run("--fairness").assert_outcomes(passed=3)
    for name in ("this", "pytest_fairness.pytest_integration.session"):
        assert name in sys.modules
    for name in ("app", "folder", "folder.inside", "test_own"):
        assert name not in sys.modules
