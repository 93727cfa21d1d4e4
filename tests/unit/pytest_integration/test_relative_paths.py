"""Paths relative to a folder."""

from __future__ import annotations

import ntpath
import os
from pathlib import Path, PureWindowsPath

import pytest

from pytest_fairness.pytest_integration.configuration import relative_path


def test_a_path_in_another_folder_begins_with_dots() -> None:
    assert relative_path(Path("/home/me/probes/first.yaml"), Path("/home/me/app")) == Path("../probes/first.yaml")


def test_a_path_on_another_drive_of_windows_stays_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "relpath", ntpath.relpath)
    path = PureWindowsPath(r"D:\probes\first.yaml")
    assert relative_path(path, PureWindowsPath(r"C:\app")) == path
