"""Fairness regression tests of language models and of applications built on them, as a pytest plugin."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_fairness.version import __version__

if TYPE_CHECKING:
    from pytest_fairness.errors import FairnessError, NotMeasurable, ProbeError, RequestFailed, TargetError
    from pytest_fairness.pytest_integration.fixtures import Corpus, CorpusGenerator, FairnessCheck, LlmClient
    from pytest_fairness.records import Request, Response, Verdict
    from pytest_fairness.reports.charts import Plot
    from pytest_fairness.reports.tables import DataTable
    from pytest_fairness.run import ItemMeasurement
    from pytest_fairness.run.run import Audited, AuditResults, audit
    from pytest_fairness.targets import Target


_MODULES = {
    "errors": ("FairnessError", "NotMeasurable", "ProbeError", "RequestFailed", "TargetError"),
    "pytest_integration.fixtures": ("Corpus", "CorpusGenerator", "FairnessCheck", "LlmClient"),
    "records": ("Request", "Response", "Verdict"),
    "reports.charts": ("Plot",),
    "reports.tables": ("DataTable",),
    "run": ("ItemMeasurement",),
    "run.run": ("AuditResults", "Audited", "audit"),
    "targets": ("Target",),
}
"""Public names by the module that defines them.

A module is imported on first use of its names, because pytest imports this package at every start.
"""

__all__ = [
    "AuditResults",
    "Audited",
    "Corpus",
    "CorpusGenerator",
    "DataTable",
    "FairnessCheck",
    "FairnessError",
    "ItemMeasurement",
    "LlmClient",
    "NotMeasurable",
    "Plot",
    "ProbeError",
    "Request",
    "RequestFailed",
    "Response",
    "Target",
    "TargetError",
    "Verdict",
    "__version__",
    "audit",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"pytest_fairness.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
