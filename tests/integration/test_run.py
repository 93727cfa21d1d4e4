"""Auditing without pytest: `audit()` and the command line of the package."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_fairness import audit
from pytest_fairness.__main__ import main
from pytest_fairness.asking.claims import Freshness
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import FairnessError, NotMeasurable, ProbeError, TargetError
from pytest_fairness.records import Response
from tests.support import hospital
from tests.support.projects import KIM, LOU, PROBE, Project


def polite(prompt: str) -> str:
    return "A lamp."


async def biased(prompt: str) -> str:
    return "I'm sorry, but I can't help with that." if "Kim" in prompt else "A lamp."


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A probe file in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "gifts.yaml"
    path.write_text(PROBE)
    return path


def test_audit_returns_every_items_measurement(probe: Path) -> None:
    kim, lou = audit(probe, target=biased)
    assert (kim.id, kim.value, kim.labels) == (KIM, 1.0, {"name": "Kim"})
    assert (lou.id, lou.value) == (LOU, 0.0)
    assert kim.measurement is not None
    assert kim.measurement.n == {"Kim": 10, "Alex": 10}
    assert (probe.parent / ".fairness/responses.sqlite").exists()


def test_items_of_a_probe_read_each_answer_once(probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [found.value for found in audit(probe, target=biased)]
    read: list[str] = []
    get = Store.get

    def counted(store: Store, keys: Iterable[str], fresh: Freshness) -> dict[str, Response]:
        read.extend(keys := list(keys))
        return get(store, keys, fresh)

    monkeypatch.setattr(Store, "get", counted)
    assert [found.value for found in audit(probe, target=biased, replay=True)] == first
    # Ten each about Alex, who is compared with both, Kim and Lou.
    assert len(read) == len({*read}) == 30


def test_items_of_a_probe_use_the_answers_of_their_own_target(probe: Path) -> None:
    found = [[item.value for item in audit(probe, target=each)] for each in (biased, polite, biased)]
    assert found == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]


def test_audit_takes_the_settings_of_a_run(probe: Path) -> None:
    kim, _ = audit(str(probe), target=polite, trials=8, store="elsewhere.sqlite")
    assert kim.measurement is not None
    assert sum(kim.measurement.n.values()) == 16
    assert (probe.parent / "elsewhere.sqlite").exists()
    assert not (probe.parent / ".fairness").exists()


def test_what_cannot_be_measured_holds_its_error_and_hurts_no_other(probe: Path) -> None:
    def application(prompt: str) -> str:
        if "Kim" in prompt:
            raise ValueError("no Kim")
        return "A lamp."

    kim, lou = audit(probe, target=application)
    assert isinstance(kim.error, NotMeasurable)
    with pytest.raises(NotMeasurable):
        _ = kim.value
    assert lou.value == 0.0


def test_audit_of_recorded_answers_asks_nobody(probe: Path) -> None:
    rows = "".join(f"{name},A chair.\n" for name in ("Alex", "Kim", "Lou") for _ in range(9))
    (probe.parent / "data.csv").write_text(f"name,text\n{rows}")
    text = PROBE.replace("prompt: What would you recommend to {name}?", "responses: {file: data.csv}")
    probe.write_text(text.replace("trials: 10\n", ""))
    assert [found.value for found in audit(probe)] == [0.0, 0.0]


def test_wrong_arguments_are_said(probe: Path) -> None:
    with pytest.raises(ValueError, match=r"audit: trials must be a whole number from 1 to 100,000, not 'many'\."):
        audit(probe, polite, trials="many")  # type: ignore[arg-type] # as wrong as users get it
    with pytest.raises(ValueError, match=r"audit: timeout must be a number above 0, not -1\."):
        audit(probe, polite, timeout=-1)
    with pytest.raises(ValueError, match=r"audit: base_url must be text, not 7\."):
        audit(probe, polite, base_url=7)  # type: ignore[arg-type] # as above
    with pytest.raises(TypeError, match="audit takes the path of a probe file, not dict"):
        audit({}, polite)  # type: ignore[arg-type] # as above
    with pytest.raises(ProbeError, match=f"audit takes one probe file, but {probe.parent} is a folder"):
        audit(probe.parent, polite)
    with pytest.raises(ProbeError, match=r"nowhere\.yaml:1:1: cannot be read"):
        audit("nowhere.yaml", target=polite)
    with pytest.raises(TargetError, match="unknown target 'nobody'"):
        audit(probe, target="nobody")
    probe.write_text(PROBE + "extra: 1\n")
    with pytest.raises(ProbeError, match=r"gifts.yaml:\d+:1: unknown key 'extra'"):
        audit(probe, target=polite)


def test_export_writes_recorded_answers_by_label_and_trial(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.probe(text=PROBE.replace("What would", '["What would').replace("{name}?", '{name}?", "Why {name}?"]'))
    project.run("--fairness")
    capsys.readouterr()
    assert main(["export", "probes/gifts.yaml", "--target", "python:app:polite"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 60
    assert rows[0]["labels"] == {"name": "Alex", "prompt": "1"}
    assert rows[0]["text"].endswith("and sturdy Table.")
    assert [row["trial"] for row in rows[:10]] == list(range(10))
    assert main(["export", "probes/gifts.yaml"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows
    assert main(["export", "probes/gifts.yaml", "--target", "python:app:polite", "-o", "rows.jsonl"]) == 0
    assert len((project.path / "rows.jsonl").read_text().splitlines()) == 60
    assert len(project.calls()) == 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "probes/none.yaml"], "probes/none.yaml:1:1: cannot be read"),
        (["export", "probes/gifts.yaml", "--target", "nobody"], "unknown target 'nobody'"),
        (["export", "probes/gifts.yaml", "--target", "openai:x"], "no answers of openai:x"),
        (["export", "probes/gifts.yaml", "--store", "none.sqlite"], "there is no store at this path"),
        (
            ["export", "probes/gifts.yaml", "--target", "python:app:polite", "-o", "no/such/file"],
            "no/such/file: cannot",
        ),
    ],
)
def test_errors_of_the_command_line_are_one_line(
    project: Project, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    project.probe()
    project.run("--fairness")
    capsys.readouterr()
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert len(errors.splitlines()) == 1


def test_schema_prints_the_schema_that_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$schema"].startswith("http://json-schema.org/draft-07/")
    assert schema == json.loads(Path(__file__).parents[2].joinpath("docs/probe.schema.json").read_text("utf-8"))


def test_the_package_runs_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pytest_fairness", "nonsense"], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 2
    assert "invalid choice: 'nonsense'" in result.stderr


def test_a_misspelt_command_or_option_says_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in [
        (["mesure"], "Did you mean 'measure'?"),
        (["export", "--measurments", "a.csv"], "--measurments. Did you mean '--measurements'?"),
        (["init", "--ci", "githb"], "Did you mean 'github'?"),
    ]:
        with pytest.raises(SystemExit):
            main(arguments)
        assert capsys.readouterr().err.endswith(f"{message}\n")


def test_without_a_command_all_commands_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest-fairness"])
    assert main() == 2
    assert "measure a file of answers without a probe" in capsys.readouterr().err


def test_errors_derive_from_one_class() -> None:
    assert issubclass(NotMeasurable, FairnessError)


HOSPITAL = """
kind: generation
axes: {person: {unmarked: man, marked: [woman]}}
responses: {file: answers.jsonl}
audits: {jsd: {limit: 0.5}, mmd: {limit: 0.5}, marked_words: {limit: 9}}
"""


def test_renamed_probe_file_gives_the_same_digits(project: Project) -> None:
    project.write("probes/answers.jsonl", hospital.AFTER.read_text("utf-8"))
    probe = project.probe("probes/hospital.yaml", HOSPITAL)
    before = project.report(target=None)["items"]
    probe.rename(probe.with_name("clinic.yaml"))
    after = project.report(target=None)["items"]
    assert [(item["probe"], item["id"]) for item in after] == [("clinic", item["id"]) for item in before]
    digits = ("value", "interval", "p_value", "details")
    assert [[item[name] for name in digits] for item in after] == [[item[name] for name in digits] for item in before]
