"""Display of item ids that do not end in a bracket (`svm[race=Black]@small`) in pytest's summary and JUnit files.

From version 9.2 on, pytest parses node ids: it treats all text after the first bracket as parameters and adds a closing
bracket to that text.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from _pytest.junitxml import xml_key


def keep_names_in_summary(config: pytest.Config) -> None:
    """Make pytest's summary show item ids unchanged; pytest adds a bracket to an id that does not end in one."""
    shown = config.cwd_relative_nodeid

    def unchanged(nodeid: Any) -> Any:
        relative = shown(nodeid)
        if getattr(relative, "params", None) is None or str(nodeid).endswith("]"):
            return relative
        *names, last = relative.names
        return dataclasses.replace(relative, names=(*names, f"{last}[{relative.params}"), params=None)

    config.cwd_relative_nodeid = unchanged  # type: ignore[method-assign] # pytest has no hook for this


def keep_name_in_junit(config: pytest.Config, report: pytest.TestReport) -> None:
    """Make an item's id the name of its test case in the JUnit file; pytest would add a bracket at the end."""
    xml = config.stash.get(xml_key, None)
    if xml is not None and not report.nodeid.endswith("]"):
        names, bracket, values = report.nodeid.partition("[")
        xml.node_reporter(report).add_attribute("name", names.rpartition("::")[2] + bracket + values)
