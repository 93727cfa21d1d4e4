"""The messages of faulty probe files and of faulty files beside them: one entry of a table for each probe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.errors import ProbeError
from tests.support.workbooks import workbook

CASES: list[dict[str, Any]] = json.loads(Path(__file__, "../../../support/faulty_probes.json").resolve().read_text())


def messages(case: dict[str, Any], folder: Path) -> list[str]:
    """Return the messages for a probe and, if it can be loaded, for its recorded answers or its prompts."""
    for name, content in case.get("files", {}).items():
        if isinstance(content, list) and name.endswith(".xlsx"):
            workbook(folder / name, content)
        else:
            (folder / name).write_text("\n".join(content), "utf-8", newline="")
    try:
        probe = probes.parse("\n".join(case["probe"]).encode(), folder / "p.yaml", kinds.schemas(), root=folder)
        if probe.responses is not None:
            kinds.recorded_answers(probe)
        else:
            list(probe.prompts())
    except ProbeError as error:
        return str(error).split("\n")
    return []


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_messages(case: dict[str, Any], tmp_path: Path) -> None:
    assert messages(case, tmp_path) == case["messages"]
    assert case["messages"], "the probe must be faulty"
