"""The table of probe kinds."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.audits import registry
from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import KINDS, Kind
from pytest_fairness.probes import GenerationProbe, Probe

TEXTS = "kind: generation\nprompt: Describe a {g}.\naxes: {g: {unmarked: man, marked: [woman]}}\naudits: {jsd: }\n"
RECORDS = """\
kind: counterfactual
prompt: "Sex {sex}. Rich?"
records: [{id: a, sex: m, rich: "yes"}, {id: b, sex: f, rich: "no"}]
flip: {sex: {m: f}}
audits: {flip_rate: }
"""


def read(text: str) -> Probe:
    return probes.parse(text.encode(), Path("probe.yaml"), kinds.schemas())


def test_every_kind_has_the_name_that_its_probes_state() -> None:
    assert {name: get_args(kind.model.model_fields["kind"].annotation) for name, kind in KINDS.items()} == {
        name: (name,) for name in KINDS
    }


def test_every_audit_belongs_to_a_known_kind_and_every_kind_has_audits() -> None:
    assert registry.AUDITS.keys() == KINDS.keys()
    assert all(schema.audits for schema in kinds.schemas().values())


def test_a_probe_without_recorded_answers_has_no_rows() -> None:
    with pytest.raises(ValueError, match="the probe probe has no `responses:`"):
        kinds.recorded_answers(read(TEXTS))


@pytest.mark.parametrize("text", [TEXTS, RECORDS])
def test_quality_is_unknown_if_the_probe_does_not_say_what_is_right(text: str) -> None:
    assert kinds.quality(read(text), []) is None


def test_a_kind_without_a_reader_takes_no_recorded_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "generation", Kind(GenerationProbe))
    (tmp_path / "texts.csv").write_text("g,text\nman,x\nwoman,y\n", "utf-8")
    text = TEXTS + "responses: {file: texts.csv}\n"
    probe = probes.parse(text.encode(), tmp_path / "probe.yaml", kinds.schemas())
    with pytest.raises(ProbeError, match="probes of the kind 'generation' cannot read recorded answers"):
        kinds.recorded_answers(probe)
