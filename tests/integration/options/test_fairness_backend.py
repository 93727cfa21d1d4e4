"""`fairness_backend`: the same numbers in this process, in several processes, and on real clusters on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Imported before pytester notes `sys.meta_path`, to which Dask's dependency importlib_metadata adds.
import distributed
import joblib
import numpy as np
import pytest

from pytest_fairness import backends
from pytest_fairness.answers import recorded
from pytest_fairness.audits import documents, words
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Measurement
from pytest_fairness.run import Run, items_of
from pytest_fairness.stats import excess_divergence
from tests.support.projects import Project, ini

TEXTS = 4_500
"""More than are read at a time."""
WORDS = [f"word{number}" for number in range(300)]
PROBE = """
kind: generation
axes: {gender: {unmarked: man, marked: [woman]}}
responses: {file: texts.csv, strata: [topic]}
audits:
  jsd: {limit: 0.5}
  marked_words: {limit: 100}
  refusals: {limit: 0.5}
"""


def texts(number: int) -> str:
    """Return a table of texts with one word that women's texts have more often, and some refusals."""
    random = np.random.default_rng(5)
    rows = ["gender,topic,text"]
    for each in range(number):
        woman = each % 2 == 1
        words = [WORDS[int(300 * random.random() ** 2)] for _ in range(8)] + ["hair"] * (woman and each % 7 == 0)
        text = "I cannot help with this." if random.random() < 0.05 else f"{' '.join(words)}."
        rows.append(f"{'woman' if woman else 'man'},topic {each // 2 % 3},{text}")
    return "\n".join(rows) + "\n"


@pytest.fixture
def in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred texts be many chunks."""
    monkeypatch.setattr(recorded, "AT_ONCE", 64)
    monkeypatch.setattr(documents, "AT_ONCE", 100)
    for module in (excess_divergence, words):
        monkeypatch.setattr(module, "OPERATIONS", 2**19)


def measured(folder: Path, backend: Any) -> list[dict[str, Any]]:
    """Return the answers and the measurements of all items."""
    with Run(RunSettings(root=folder, store=folder / f"{backend}.sqlite", target="", backend=backend)) as run:
        found: list[Measurement] = []
        for item in items_of(run.load(folder / "texts.yaml")):
            answers = run.measurer.answers(item, None)
            found.append(run.measurer.measure_answers(item, answers, "").measurement)
        statuses = [(answer.text, answer.content, answer.status.value, dict(answer.labels)) for answer in answers]
    assert backends.Backend.current is None
    return [{"answers": statuses}, *(measurement.to_json() for measurement in found)]


@pytest.mark.parametrize("backend", ["joblib", "dask", "ray"])
def test_all_digits_are_those_of_one_process(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "ray":
        pytest.importorskip("ray", reason="the extra `ray` is not part of the extra `test`")
    (tmp_path / "texts.csv").write_text(texts(900))
    (tmp_path / "texts.yaml").write_text(PROBE)
    alone = measured(tmp_path, "none")
    request.getfixturevalue("in_slices")
    functions: set[str] = set()
    compute = joblib.Parallel.__call__

    def noted(self: Any, tasks: Any) -> Any:
        tasks = list(tasks)
        functions.update(getattr(function, "func", function).__name__ for function, *_ in tasks)
        return compute(self, tasks)

    monkeypatch.setattr(joblib.Parallel, "__call__", noted)
    assert json.dumps(measured(tmp_path, backend)) == json.dumps(alone)
    assert functions == {"_read", "_counted", "_divergences", "_excesses", "_largest_z"}


@pytest.mark.timeout(300)
def test_workers_share_a_cluster(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("probes/texts.csv", texts(TEXTS))
    project.probe("probes/texts.yaml", PROBE.replace("  marked_words: {limit: 100}\n", ""))
    alone = items(project.run)
    project.write("pytest.ini", ini(fairness_backend="dask"))
    # The workers are threads of this process, which has imported what they need; the runs are other processes.
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, **backends.WITHOUT_DASHBOARD}
    with distributed.LocalCluster(protocol="tcp://", **options) as cluster, distributed.Client(cluster) as client:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        (project.path / ".fairness/responses.sqlite").unlink()
        shared = items(project.run_forked, "-n", "2")
        assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter) > 0
    assert shared == alone


def items(run: Callable[..., object], *arguments: str) -> list[dict[str, Any]]:
    """Return the items of a run's report."""
    run("--fairness", "--fairness-report", "report.json", *arguments, target=None)
    found: list[dict[str, Any]] = json.loads(Path("report.json").read_text("utf-8"))["items"]
    assert [item["verdict"] for item in found] == ["pass"] * 2
    return found


def test_a_package_that_is_missing_and_an_unknown_backend(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe()
    monkeypatch.setattr(backends, "find_spec", lambda _: None)
    for value, message in (
        ("dask", "needs the package distributed. Install it: `pip install "),
        ("spark", "must be none or joblib or dask or ray, not 'spark'"),
    ):
        project.write("pytest.ini", ini(fairness_backend=value))
        assert message in project.run("--fairness").stderr.str()
