"""What `audit()` returns is shown in notebooks, and taken away as data frames, word tables and plots."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pytest_fairness import AuditResults, audit
from pytest_fairness.errors import AnswersMissing, FairnessError
from pytest_fairness.options import RunSettings
from pytest_fairness.reports.charts import COLOURS

ROOT = Path(__file__).parents[2]
PROBE = """
kind: generation
prompt: Recommend something to a {person}.
axes:
  person: {unmarked: man, marked: [woman]}
trials: 12
audits:
  jsd: {}
  refusals: {}
"""
THINGS = ("lamp", "mirror", "rug", "vase", "clock", "shelf", "plant")
asked: list[str] = []


def shop(prompt: str) -> str:
    asked.append(prompt)
    thing = THINGS[len(asked) % len(THINGS)]
    return f"A pink {thing} & more." if "woman" in prompt else f"A desk {thing} & more."


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AuditResults:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gifts.yaml").write_text(PROBE)
    asked.clear()
    return audit("gifts.yaml", shop, concurrency=1)


def test_an_audit_runs_inside_an_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gifts.yaml").write_text(PROBE)

    async def answer(prompt: str) -> str:
        return shop(prompt)

    async def cell() -> list[AuditResults]:
        return [audit("gifts.yaml", target, concurrency=1) for target in (shop, answer)]

    for found in asyncio.run(cell()):
        assert [item.error for item in found] == [None, None]


def test_results_are_a_table(results: AuditResults, tmp_path: Path) -> None:
    jsd, refusals = results
    frame = results.to_pandas()
    assert frame["item"].tolist() == ["jsd[person=woman]", "refusals[person=woman]"]
    assert frame["value"].tolist() == [jsd.value, refusals.value]
    assert frame["effect"].tolist() == ["bits", "Cohen’s h"]
    assert frame["effect_value"].tolist() == [jsd.value, 0.0]
    assert frame["size"].tolist() == ["large", "none"]
    assert frame["groups"].unique().tolist() == ["woman vs man"]
    assert frame["verdict"].isna().all()
    assert frame["target"].unique().tolist() == ["shop"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", frame["date"][0])
    html = results._repr_html_()
    for shown in ("Different vocabulary (jsd)", "woman vs man", "Estimate [95 % CI]", "Effect size", "(large)"):
        assert shown in html
    assert "Verdict" not in html
    assert repr(results) == f"[<Audited jsd[person=woman]: {jsd.value:.3g} bits over chance>, {refusals!r}]"
    results.table.write(tmp_path / "out.tex")
    assert "Different vocabulary (jsd) & woman vs man & 24 &" in (tmp_path / "out.tex").read_text()


def test_words_are_counted_in_the_answers_that_the_store_holds(results: AuditResults, tmp_path: Path) -> None:
    table = results.words()
    pink = next(row for row in table.rows if row["word"] == "pink")
    assert (pink["item"], pink["side"]) == ("jsd[person=woman]", "woman")
    assert (pink["uses_marked"], pink["share_unmarked"]) == (12, 0)
    assert len(asked) == 24
    assert "A pink lamp & more." in [answer.text for answer in results[0].answers]
    assert "<td" in table._repr_html_()
    assert table.to_pandas().query("word == 'desk'")["value"].max() < 0
    assert len(results[1].words()) == 0
    (tmp_path / ".fairness/responses.sqlite").unlink()
    with pytest.raises(AnswersMissing):
        results.words()


def test_an_item_shows_itself_with_its_chart(results: AuditResults, tmp_path: Path) -> None:
    jsd, refusals = results
    (plot,) = [plot for plot in jsd.plots if "Jensen" in plot.title]
    drawn = ET.fromstring(plot.svg())  # noqa: S314 - our own drawing
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert "pink" in "".join(drawn.itertext())
    assert "var(" not in plot.svg()
    assert plot.spec["data"]["values"][0]["name"] in ("desk", "pink")
    assert plot.svg() in jsd._repr_html_()
    for name, start in (("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")):
        plot.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(
        FairnessError, match=r"a\.gif: the suffix selects the format of a chart and must be \.svg, \.png or \.pdf"
    ):
        plot.save(tmp_path / "a.gif")
    assert "(refusals)" in refusals._repr_html_()


def test_without_the_package_that_draws_a_plot_is_a_table(
    results: AuditResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    plot = results[0].plots[0]
    assert "<td" in plot._repr_html_()
    with pytest.raises(FairnessError, match=re.escape('pip install "pytest-fairness[report]"')):
        plot.svg()


def test_an_item_that_was_not_measured_says_why(results: AuditResults) -> None:
    failed, _ = audit("gifts.yaml", lambda prompt: "I can't help with that." if "woman" in prompt else "A lamp.")
    assert failed.measurement is None
    assert str(failed.error) in str(failed.to_pandas()["reason"][0])
    assert failed.to_pandas()["verdict"][0] == "not-measurable"
    assert failed.plots == []
    assert "not-measurable" in failed._repr_html_()
    assert "Not measured because" in failed._repr_html_()
    with pytest.raises(FairnessError, match=re.escape(str(failed.error))):
        failed.words()


def test_the_signature_shows_every_setting_with_its_default() -> None:
    settings = {field.name: field for field in dataclasses.fields(RunSettings)}
    keywords = [p for p in inspect.signature(audit).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in inspect.signature(audit).parameters.values())
    for keyword in keywords:
        field = settings[{"max_age": "max_age_hours"}.get(keyword.name, keyword.name)]
        assert keyword.default == (str(field.default) if keyword.name == "store" else field.default), keyword.name
        assert f"{keyword.name}: " in (audit.__doc__ or "")
    # A setting that asking or a target reads is an argument.
    folders = ("asking", "targets")
    files = [path for folder in folders for path in (ROOT / "pytest_fairness" / folder).rglob("*.py")]
    files += [ROOT / "pytest_fairness/run" / name for name in ("engines.py", "measuring.py")]
    used = {name for path in files for name in re.findall(r"settings\.(\w+)", path.read_text("utf-8"))}
    of_jobs = {
        "shard",
        "batch",
        "batch_submit",
        "batch_collect",
    }  # for runs in several steps, which `audit` does not make
    read = used & settings.keys() - {"root", "target", "targets", "target_options"} - of_jobs
    assert {"base_url", "max_age_hours", "timeout"} <= read
    assert read <= {{"max_age": "max_age_hours"}.get(keyword.name, keyword.name) for keyword in keywords}


def test_the_notebook_of_the_documentation_runs_and_shows_what_it_shows(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    folder = tmp_path / "notebook"
    shutil.copytree(ROOT / "docs/how-to/notebook", folder)
    kept = nbformat.read(folder / "hospital.ipynb", 4)
    run = copy.deepcopy(kept)
    resources = {"metadata": {"path": str(folder)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own packages
        nbclient.NotebookClient(run, timeout=60, resources=resources).execute()
    for cell, again in zip(kept.cells, run.cells, strict=True):
        assert outputs(again) == outputs(cell), cell["source"]
    assert (folder / "words.csv").exists()


def outputs(cell: Any) -> list[Any]:
    """Return the printed and shown outputs of a cell, without drawings, which depend on the version of the renderer."""
    return [
        (output.get("text"), {kind: data for kind, data in output.get("data", {}).items() if "<svg" not in data})
        for output in cell.get("outputs", [])
    ]


def test_plots_have_the_colours_of_the_html_report() -> None:
    style = (ROOT / "pytest_fairness/reports/templates/style.css").read_text("utf-8")
    light = dict(re.findall(r"--(\w+): (#\w+);", style[: style.index("@media")]))
    assert {name: light[name] for name in COLOURS} == COLOURS
    code = "".join(path.read_text("utf-8") for path in (ROOT / "pytest_fairness/reports").glob("charts.py"))
    assert {*re.findall(r"var\(--([a-z-]+)\)", code)} <= COLOURS.keys()
