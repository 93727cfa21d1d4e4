"""Counterfactual probes: sources of records, samples, flips, and errors with their positions."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness import kinds
from pytest_fairness.errors import ProbeError
from pytest_fairness.kinds import recorded_answers, schemas
from pytest_fairness.probes import CounterfactualProbe, parse
from pytest_fairness.probes.counterfactual_records import Flip
from pytest_fairness.records import NumberFormat, Prompt, Status
from tests.support.probe_files import KINDS

PEOPLE = """\
kind: counterfactual
prompt: |
  Age is {age}; works {hours-per-week} hours; relationship is {relationship}; sex is {sex}.
  More than $50,000?
records:
  - {id: a, age: 39, hours-per-week: 40, relationship: Husband, sex: Male, income: ">50K"}
  - {id: b, age: 50.0, hours-per-week: "?", relationship: Wife, sex: Female, income: "<=50K"}
  - {id: c, age: null, hours-per-week: 20, relationship: Unmarried, sex: Female, income: "<=50K"}
flip:
  sex: {Male: Female}
  with: {relationship: {Husband: Wife}}
truth: {column: income, positive: ">50K"}
audits: {flip_rate: , accuracy: }
"""
CSV = """\
age,race,sex,income
30,White,Male,>50K
31,Black,Male,<=50K
32,Asian,Female,>50K
33,White,Female,<=50K
34,White,Male,>50K
34,White,Male,>50K
35,Black,Male,?
"""


def read(text: str, path: Path = Path("/project/probes/people.yaml")) -> CounterfactualProbe:
    probe = parse(text.encode(), path, KINDS)
    assert isinstance(probe, CounterfactualProbe)
    return probe


def errors(text: str, path: Path = Path("/project/probes/people.yaml")) -> list[str]:
    with pytest.raises(ProbeError) as caught:
        parse(text.encode(), path, KINDS)
    return [line.removeprefix(f"{path.as_posix()}:") for line in str(caught.value).split("\n")]


def of_file(folder: Path, name: str, content: str, more: str = "", **changes: Any) -> CounterfactualProbe:
    """Return a probe of the records in a file."""
    (folder / name).write_text(content, "utf-8")
    written = {"prompt": "Age {age}, sex {sex}.", "flip": {"sex": {"Male": "Female"}}, **changes}
    text = f"kind: counterfactual\nrecords: {{file: {name}{more}}}\naudits: {{flip_rate: }}\n"
    return read(text + "".join(f"{key}: {json.dumps(value)}\n" for key, value in written.items()), folder / "p.yaml")


def about(asked: Iterable[Prompt], **labels: str) -> list[str]:
    return [prompt.request.prompt for prompt in asked if all(prompt.labels.get(key) == labels[key] for key in labels)]


def test_each_record_is_asked_about_as_it_is_again_and_flipped() -> None:
    asked = list(read(PEOPLE).prompts())
    assert Counter((prompt.labels["record"], prompt.labels["form"]) for prompt in asked) == {
        (record, form): number for record in "abc" for form, number in (("own", 1), ("again", 2), ("flipped", 1))
    }
    own = "Age is 39; works 40 hours; relationship is Husband; sex is Male.\nMore than $50,000?"
    flip = own.replace("Husband", "Wife").replace("Male", "Female")
    assert about(asked, record="a", form="own") == [own]
    assert about(asked, record="a", form="flipped") == [flip]
    assert about(asked, record="a", form="again") == [own, flip]
    assert about(asked, record="b", form="flipped") == [
        "Age is 50; relationship is Husband; sex is Male.\nMore than $50,000?"
    ]
    assert about(asked, record="c", form="own") == [
        "works 20 hours; relationship is Unmarried; sex is Female.\nMore than $50,000?"
    ]
    flipped = next(prompt for prompt in asked if prompt.labels["form"] == "flipped")
    assert flipped.labels == {
        "record": "a", "sex": "Male", "truth": ">50K", "form": "flipped", "attribute": "sex", "to": "Female",
    }  # fmt: skip


def test_asking_again_is_a_request_of_its_own() -> None:
    asked = list(read(PEOPLE + "sampling: {seed: 7}\n").prompts())
    assert len({prompt.request for prompt in asked}) == len(asked) == 3 * 4
    again = next(prompt for prompt in asked if prompt.labels["form"] == "again")
    assert (again.trial, again.request.trial) == (0, 100_000)
    assert len({prompt.request.sampling.seed for prompt in asked}) == len(asked), "no two draws share a seed"
    assert [prompt.request for prompt in read(PEOPLE).prompts(1)] == [
        prompt.request for prompt in read(PEOPLE).prompts()
    ]


def test_trials_are_the_repetitions_of_their_prompt() -> None:
    once, twice = (list(read(PEOPLE).prompts(trials)) for trials in (1, 2))
    assert Counter(prompt.labels["form"] for prompt in twice) == {"own": 3 * 2, "flipped": 3 * 2}
    assert {prompt.request for prompt in once if prompt.labels["form"] != "again"} < {
        prompt.request for prompt in twice
    }


def test_more_than_two_values_and_several_attributes(tmp_path: Path) -> None:
    flip = {"race": ["White", "Black", "Asian"], "sex": {"Male": "Female"}}
    probe = of_file(tmp_path, "people.csv", CSV, prompt="{age}, {race}, {sex}.", flip=flip)
    asked = list(probe.prompts())
    first = asked[0].labels["record"]
    flipped = [
        prompt.labels for prompt in asked if prompt.labels["record"] == first and prompt.labels["form"] == "flipped"
    ]
    assert [(labels["attribute"], labels["to"]) for labels in flipped] == [
        ("race", "Black"), ("race", "Asian"), ("sex", "Female"),
    ]  # fmt: skip
    assert len(asked) == 7 * 2 * (1 + 2 + 1)


def test_records_have_names_that_last(tmp_path: Path) -> None:
    first = of_file(tmp_path, "people.csv", CSV)
    lines = CSV.splitlines()
    turned = of_file(tmp_path, "turned.csv", "\n".join([lines[0], *reversed(lines[1:])]))
    names = [record.id for record in first.records]
    assert sorted(names) == sorted(record.id for record in turned.records)
    assert len({*names}) == 7
    twice = [name for name in names if name.endswith("-2")]
    assert len(twice) == 1
    assert twice[0].removesuffix("-2") in names


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_json_records(tmp_path: Path, suffix: str) -> None:
    rows = [{"age": 30, "sex": "Male"}, {"age": None, "sex": "Female"}]
    content = json.dumps(rows) if suffix == ".json" else "\n".join(map(json.dumps, rows))
    probe = of_file(tmp_path, f"people{suffix}", content)
    assert [dict(record.fields) for record in probe.records] == [{"age": "30", "sex": "Male"}, {"sex": "Female"}]


@pytest.mark.parametrize("suffix", [".data", ".test"])
def test_the_format_of_uci(tmp_path: Path, suffix: str) -> None:
    line = "{}, ?, 77516, Bachelors, 13, Never-married, Sales, Not-in-family, White, {}, 2174, 0, 40, Peru, {}\n"
    dot = "." if suffix == ".test" else ""
    content = ("|1x3 Cross validator\n" if dot else "") + line.format(39, "Male", "<=50K" + dot)
    content += line.format(50, "Female", ">50K" + dot) + "\n\n"
    truth = {"column": "income", "positive": ">50K"}
    probe = of_file(tmp_path, f"adult{suffix}", content, prompt="{age}, {education-num}, {sex}.", truth=truth)
    first, second = probe.records
    assert first.fields["income"] == "<=50K"
    assert second.fields["hours-per-week"] == "40"
    assert "workclass" not in first.fields
    assert next(iter(probe.prompts())).request.prompt == "39, 13, Male."


def test_samples_are_balanced_seeded_and_blind_to_the_order(tmp_path: Path) -> None:
    rows = [
        f"{number},{'Male' if number % 4 else 'Female'},{'>50K' if number % 3 else '<=50K'}" for number in range(240)
    ]
    header = "age,sex,income\n"
    more = ", sample: 40, seed: 3, balance: [sex, income]"
    drawn = of_file(tmp_path, "all.csv", header + "\n".join(rows), more)
    assert set(Counter((r.fields["sex"], r.fields["income"]) for r in drawn.records).values()) == {10}
    turned = of_file(tmp_path, "turned.csv", header + "\n".join(reversed(rows)), more)
    assert {record.id for record in drawn.records} == {record.id for record in turned.records}
    other = of_file(tmp_path, "other.csv", header + "\n".join(rows), more.replace("3", "4"))
    assert {record.id for record in drawn.records} != {record.id for record in other.records}
    whole = of_file(tmp_path, "whole.csv", header + "\n".join(rows), ", balance: [sex, income]")
    # The rarest combination, women with a low income, is there 20 times.
    assert set(Counter((r.fields["sex"], r.fields["income"]) for r in whole.records).values()) == {20}
    grown = of_file(tmp_path, "grown.csv", header + "\n".join([*rows, "300,Male,>50K"]), ", sample: 40, seed: 3")
    before = of_file(tmp_path, "before.csv", header + "\n".join(rows), ", sample: 40, seed: 3")
    assert len({r.id for r in grown.records} & {r.id for r in before.records}) >= 39


def test_a_balanced_sample_goes_on_where_a_combination_is_used_up(tmp_path: Path) -> None:
    content = "age,sex\n" + "\n".join(f"{number},{'Female' if number < 3 else 'Male'}" for number in range(20))
    probe = of_file(tmp_path, "few.csv", content, ", sample: 10, balance: [sex]")
    assert Counter(record.fields["sex"] for record in probe.records) == {"Female": 3, "Male": 7}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (", sample: 4, balance: [sex]", "there are only 2 records with sex, but `sample` is 4: lower `sample`"),
        (
            ", balance: [sex, race]",
            "no record has a value in every column of `balance` (sex, race): correct",
        ),
    ],
)
def test_a_balanced_sample_needs_records_with_values(tmp_path: Path, settings: str, message: str) -> None:
    with pytest.raises(ProbeError, match=re.escape(message)):
        of_file(tmp_path, "few.csv", "age,sex\n30,Male\n40,Female\n50,\n", settings)


def test_the_fingerprint_changes_with_flips_and_judge_but_not_with_records() -> None:
    parts = read(PEOPLE).fingerprint({"attribute": "sex"})
    assert set(parts) == {"prompt", "system", "answer", "truth", "flip sex"}
    other = read(PEOPLE.replace("Husband: Wife", "Wife: Husband")).fingerprint({"attribute": "sex"})
    assert [name for name in parts if parts[name] != other[name]] == ["flip sex"]
    fewer = PEOPLE.replace("  - {id: c", "  #")
    assert read(fewer).fingerprint({"attribute": "sex"}) == parts
    judged = read(PEOPLE + "answer: {judge: true}\n")
    assert "judge" in judged.fingerprint({"attribute": "sex"})
    assert judged.reading.judging is not None
    assert "sex is [sex]" in judged.reading.judging.question


def test_records_of_one_group_may_be_shown_as_another() -> None:
    men = PEOPLE.replace("sex: Female", "sex: Male").replace("Wife,", "Husband,")
    asked = [prompt.labels for prompt in read(men).prompts()]
    assert {labels["to"] for labels in asked if labels["form"] == "flipped"} == {"Female"}
    # A value that no record has is a mistake if records have another one that is not listed.
    assert (
        "no record has the sex 'Femal': did you mean 'Female'?"
        in errors(PEOPLE.replace("Male: Female", "Male: Femal"))[0]
    )


INVALID = [
    ("flip:\n  sex: {Male: Female}", "flip:\n  sax: {Male: Female}", "no record has the field 'sax': did you mean"),
    ("Male: Female", "Male: Famale", "no record has the sex 'Famale': did you mean 'Female'?"),
    ("Male: Female", "Male: Male", "'Male' is flipped to itself: write two different values"),
    ("{Male: Female}", "{Male: Female, Female: Male}", "a mapping has only one pair of values"),
    ("{Husband: Wife}", "{Hasband: Wive}", "no record has the relationship 'Hasband' or 'Wive': did you mean"),
    ("relationship: {Husband", "relation: {Husband", "no record has the field 'relation': did you mean"),
    ("{sex}", "{sexe}", "unknown placeholder '{sexe}': did you mean 'sex'?"),
    ("; sex is {sex}", "", "this prompt does not use {sex}, which is flipped"),
    ('positive: ">50K"', 'positive: ">50k"', "no record has the income '>50k': did you mean '>50K'?"),
    ("column: income", "column: incom", "no record has the field 'incom': did you mean 'income'?"),
    ("truth: {column: income, positive: \">50K\"}\n", "", "`accuracy` needs the true answer about each record"),
    ("id: b", "id: a", "records 1 and 2 have the same id 'a'"),
    ("id: b, ", "", "record 2 has no value of 'id'"),
    ("audits:", "answer: {positive: yep}\naudits:", "'yep' is not one of the choices"),
    ("audits:", "answer: {choices: [a, A]}\naudits:", "'A' is repeated"),
    ("audits:", "answer: {judge: true, votes: 2}\naudits:", "must be odd"),
    ("audits:", "answer: {votes: 3}\naudits:", "`votes` needs a judge"),
    ("; sex is {sex}", ", sex is {sex} at {age}", "flipping 'sex' changes nothing in the prompt of record c"),
    ("  sex: {Male: Female}\n", "", "no attribute is flipped"),
    ("{relationship: {Husband: Wife}}", "{relationship: Husband}", "must be a mapping of values, such as"),
    ("{relationship: {Husband: Wife}}", "{relationship: {Husband: {Wife: Spouse}}}", "values must be text"),
    ("{Male: Female}", "{Male: {Female: Male}}", "the value after the flip must be text"),
    ("{relationship: {Husband: Wife}}", "[relationship, sex]", "must be a mapping of columns"),
    ("audits:", "responses: {file: x.csv}\naudits:", "there is no file 'x.csv'"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "message"), INVALID, ids=[message[:30] for _, _, message in INVALID])
def test_an_error_is_reported_at_its_position(before: str, after: str, message: str) -> None:
    assert before in PEOPLE
    found = errors(PEOPLE.replace(before, after, 1))
    assert any(message in error for error in found), found


def test_with_names_its_attribute_where_several_are_flipped() -> None:
    several = PEOPLE.replace("sex: {Male: Female}", "sex: {Male: Female}\n  age: ['39', '50']")
    assert any("so `with` must list each column under the attribute" in error for error in errors(several))
    probe = read(several.replace("{relationship: {Husband: Wife}}", "{sex: {relationship: {Husband: Wife}}}"))
    assert probe.flips["sex"].dependents
    assert not probe.flips["age"].dependents


CROSSED = """\
kind: counterfactual
prompt: "Relationship is {relationship}; sex is {sex}; race is {race}. Hire?"
records:
  - {id: a, relationship: Husband, sex: Male, race: White}
  - {id: b, relationship: Unmarried, sex: Female, race: Black}
  - {id: c, relationship: Unmarried, sex: Female, race: Other}
flip:
  sex: {Male: Female}
  sex+race: {sex: {Male: Female}, race: [White, Black]}
  with: {sex: {relationship: {Husband: Wife}}}
audits: {flip_rate: }
"""


def test_several_attributes_are_flipped_at_once() -> None:
    probe = read(CROSSED)
    flip = probe.flips["sex+race"]
    assert flip.values == ("Male; White", "Male; Black", "Female; White", "Female; Black")
    assert about(probe.prompts(), record="a", attribute="sex+race", form="flipped") == [
        "Relationship is Husband; sex is Male; race is Black. Hire?",
        "Relationship is Wife; sex is Female; race is White. Hire?",
        "Relationship is Wife; sex is Female; race is Black. Hire?",
    ]
    labels = next(prompt.labels for prompt in probe.prompts() if prompt.labels["record"] == "b")
    assert (labels["sex"], labels["sex+race"]) == ("Female", "Female; Black")
    # Record c has a race that is not crossed: only its sex is flipped.
    assert {prompt.labels.get("attribute") for prompt in probe.prompts() if prompt.labels["record"] == "c"} == {
        None,
        "sex",
    }
    assert list(probe.flips) == ["sex", "sex+race"]


def test_a_flip_of_one_attribute_is_sent_once_for_both_items() -> None:
    asked = [prompt for prompt in read(CROSSED).prompts() if prompt.labels["record"] == "a"]
    to_female = [prompt.request for prompt in asked if prompt.labels.get("to") in ("Female", "Female; White")]
    assert len(to_female) == 4
    assert to_female[:2] == to_female[2:]


def test_the_fingerprint_of_crossed_attributes_does_not_depend_on_their_order() -> None:
    parts = read(CROSSED).fingerprint({"attribute": "sex+race"})
    assert "flip sex+race" in parts
    other = read(CROSSED.replace("race: [White, Black]", "race: [Black, White]")).fingerprint({"attribute": "sex+race"})
    assert parts["flip sex+race"] == read(CROSSED).fingerprint({"attribute": "sex+race"})["flip sex+race"]
    # The first cell is the reference: another one is another comparison.
    assert parts["flip sex+race"] != other["flip sex+race"]


INVALID_CROSSED = [
    ("sex+race:", "race+sex:", "rename 'race+sex' to 'sex+race': a flip of several attributes is named after"),
    ("race: [White, Black]", "race: White", "values are missing: write a pair, `{Male: Female}`, or a list"),
    ("[White, Black]", "[White]", "needs at least two values"),
    ("[White, Black]", "[White, White]", "'White' is repeated"),
    ("[White, Black]", "[White, Blue]", "no record has the race 'Blue'"),
    (
        "sex+race: {sex: {Male: Female}, race:",
        "sex+rice: {sex: {Male: Female}, rice:",
        "no record has the field 'rice'",
    ),
    ("; race is {race}", "", "this prompt does not use {race}, which is flipped"),
    ("with: {sex:", "with: {size:", "'size' is no flipped attribute"),
]


@pytest.mark.parametrize(
    ("before", "after", "message"), INVALID_CROSSED, ids=[each[2][:30] for each in INVALID_CROSSED]
)
def test_an_error_in_crossed_attributes_is_reported_at_its_position(before: str, after: str, message: str) -> None:
    assert before in CROSSED
    found = errors(CROSSED.replace(before, after, 1))
    assert any(message in error for error in found), found


def test_rows_of_a_file_are_answers_of_each_flip_that_leads_to_them(tmp_path: Path) -> None:
    text = CROSSED[CROSSED.index("flip:") :].replace("  with: {sex: {relationship: {Husband: Wife}}}\n", "")
    rows = "a,Male,White,yes\na,Female,White,no\na,Female,Black,no\na,Male,Black,yes\nb,Female,Black,yes\n"
    (tmp_path / "decisions.csv").write_text(f"id,sex,race,answer\n{rows}")
    path = tmp_path / "hiring.yaml"
    found = kinds.recorded_answers(read(f"kind: counterfactual\nresponses: {{file: decisions.csv}}\n{text}", path))
    flipped = [
        (answer.labels["attribute"], answer.labels["to"], answer.content)
        for answer in found
        if answer.labels["form"] == "flipped"
    ]
    assert sorted(flipped) == [
        ("sex", "Female", "no"),
        ("sex+race", "Female; Black", "no"),
        ("sex+race", "Female; White", "no"),
        ("sex+race", "Male; Black", "yes"),
    ]
    assert [answer.labels["sex+race"] for answer in found if answer.labels["form"] == "own"] == [
        "Male; White",
        "Female; Black",
    ]
    only_sex = text.replace("  sex+race: {sex: {Male: Female}, race: [White, Black]}", "  race: [White, Black]")
    with pytest.raises(ProbeError, match="differs from line 2, but not by one flip"):
        kinds.recorded_answers(read(f"kind: counterfactual\nresponses: {{file: decisions.csv}}\n{only_sex}", path))


def test_errors_of_files_of_records(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="but `sample` is 9"):
        of_file(tmp_path, "few.csv", CSV, ", sample: 9")
    with pytest.raises(ProbeError, match=r"adult.data:1: the line has 3 fields, but UCI's adult.data has 15"):
        of_file(tmp_path, "adult.data", "39, Male, >50K\n")
    with pytest.raises(ProbeError, match="is not a file of records"):
        of_file(tmp_path, "people.ods", CSV)


def test_the_error_of_a_failed_download_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    # A proxy that is not there: what asks the network gets no answer, and at once.
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    probe = read(
        PEOPLE[: PEOPLE.index("records:")] + "records: {openml: adult, version: 2}\n" + PEOPLE[PEOPLE.index("flip:") :]
    )
    for _ in range(2):
        with pytest.raises(
            ProbeError, match=r"adult \(version 2\) cannot be fetched from openml.org.*records: \{file:"
        ):
            list(probe.prompts())


@pytest.mark.skipif(version("scikit-learn") < "1.7", reason="the cache had other names before scikit-learn 1.7")
def test_a_data_set_in_the_cache_of_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    _cache(tmp_path, [["39", "Male", ">50K"], ["50", "Female", "<=50K"], ["?", "Female", ">50K"]])
    text = PEOPLE[: PEOPLE.index("prompt:")] + 'prompt: "Age {age}; sex {sex}."\nrecords: {openml: adult, version: 2}\n'
    probe = read(
        f"{text}flip: {{sex: {{Male: Female}}}}\ntruth: {{column: class, positive: '>50K'}}\naudits: {{flip_rate: }}\n"
    )
    assert [dict(record.fields) for record in probe.records] == [
        {"age": "39", "sex": "Male", "class": ">50K"},
        {"age": "50", "sex": "Female", "class": "<=50K"},
        {"sex": "Female", "class": ">50K"},
    ]
    assert about(probe.prompts(), form="own") == ["Age 39; sex Male.", "Age 50; sex Female.", "sex Female."]
    wrong = text.replace("{sex}", "{sax}")
    with pytest.raises(ProbeError, match="unknown placeholder"):
        list(read(f"{wrong}flip: {{sex: {{Male: Female}}}}\naudits: {{flip_rate: }}\n").prompts())


def _cache(folder: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write the files that scikit-learn keeps of a data set that it has fetched."""
    names = {"age": "numeric", "sex": "nominal", "class": "nominal"}
    arff = (
        "@relation adult\n@attribute age numeric\n@attribute sex {Male,Female}\n@attribute class {>50K,<=50K}\n@data\n"
    )
    arff += "\n".join(map(",".join, rows)) + "\n"
    features = [
        {"index": str(place), "name": name, "data_type": kind, "is_target": "false", "is_ignore": "false",
         "is_row_identifier": "false", "number_of_missing_values": "0"}
        for place, (name, kind) in enumerate(names.items())
    ]  # fmt: skip
    described = {
        "id": "1590", "name": "adult", "description": "Made up.",
        "version": "2", "format": "ARFF", "status": "active", "file_id": "1595261",
        "url": "https://openml.org/data/v1/download/1595261/adult.arff",
        "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),  # noqa: S324 - what OpenML says
    }  # fmt: skip
    content: Mapping[str, Any] = {
        "api/v1/json/data/list/data_name/adult/limit/2/data_version/2": {
            "data": {"dataset": [{"did": 1590, "name": "adult", "version": 2, "status": "active"}]}
        },
        "api/v1/json/data/1590": {"data_set_description": described},
        "api/v1/json/data/features/1590": {"data_features": {"feature": features}},
        "api/v1/json/data/qualities/1590": {"data_qualities": {"quality": []}},
        "data/v1/download/1595261/adult.arff": arff,
    }
    for host in ("www.openml.org", "openml.org"):
        for name, part in content.items():
            path = folder / "openml" / host / f"{name}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress((part if isinstance(part, str) else json.dumps(part)).encode()))


FIELDS = st.fixed_dictionaries({"sex": st.sampled_from(["Male", "Female"]), "relationship": st.sampled_from("HWU")})


@given(st.sampled_from(["Male", "Female"]), st.sampled_from("HWU"), st.sampled_from(["White", "Black", "Asian"]))
def test_a_crossed_flip_is_its_flips_one_after_the_other(sex: str, relationship: str, race: str) -> None:
    fields = {"sex": sex, "relationship": relationship, "race": race}
    parts = (
        Flip("sex", ("Male", "Female"), {"relationship": {"H": "W"}}),
        Flip("race", ("White", "Black", "Asian")),
    )
    crossed = Flip.combined(parts)
    assert crossed.value_of(fields) == f"{sex}; {race}"
    for value in crossed.others(f"{sex}; {race}"):
        expected = dict(fields)
        for part, content in crossed.fields_of(value).items():
            (own,) = (each for each in parts if each.attribute == part)
            if content != fields[part]:
                expected = own.apply(expected, content)
        assert crossed.apply(fields, value) == expected


@given(FIELDS)
def test_flipping_back_gives_the_record_again(fields: dict[str, str]) -> None:
    flip = Flip("sex", ("Male", "Female"), {"relationship": {"H": "W"}})
    other = "Female" if fields["sex"] == "Male" else "Male"
    flipped = flip.apply(fields, other)
    assert flipped["sex"] == other
    consistent = (fields["sex"], fields["relationship"]) not in {("Male", "W"), ("Female", "H")}
    if consistent:
        assert flip.apply(flipped, fields["sex"]) == fields
    assert (flipped["relationship"] == fields["relationship"]) == (
        (fields["sex"], fields["relationship"]) not in {("Male", "H"), ("Female", "W")}
    )


# Numbers

SCORES = PEOPLE.replace(
    'truth: {column: income, positive: ">50K"}\naudits: {flip_rate: , accuracy: }',
    "answer: {number: {min: 0, max: 100, unit: points}}\naudits: {flip_rate: }",
)


def test_a_probe_of_numbers_asks_for_numbers_and_has_no_choices() -> None:
    probe = read(SCORES)
    assert probe.reading.choices == ()
    assert probe.reading.number == NumberFormat(0, 100, "points")
    prompts = list(probe.prompts())
    assert {prompt.request.answer_format for prompt in prompts} == {"number"}
    assert {prompt.number for prompt in prompts} == {probe.reading.number}
    wider = read(SCORES.replace("max: 100", "max: 10"))
    assert wider.fingerprint({"attribute": "sex"}) != probe.fingerprint({"attribute": "sex"})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{number: {min: 0}}", "max"),
        ("{number: {min: 5, max: 5}}", "`max` must be larger than `min` (5)"),
        ("{number: {min: 0, max: .inf}}", "finite"),
        ("{number: {min: .nan, max: 1}}", "finite"),
        ("{number: {min: 0, max: 1, ranges: low}}", "unreadable, middle"),
        ("{number: {min: 0, max: 1}, judge: true}", "numbers have no `judge`: remove `judge`, or remove `number`"),
        ("{number: {min: 0, max: 1}, choices: [a, b]}", "numbers have no `choices`"),
    ],
)
def test_settings_of_numbers_are_checked(written: str, said: str) -> None:
    found = errors(SCORES.replace("{number: {min: 0, max: 100, unit: points}}", written))
    assert said in found[0]
    assert found[0].startswith("12:")


TEXTS = SCORES.replace("{number: {min: 0, max: 100, unit: points}}", "{text: true}")
WORDS = "score: {scorer: words, tolerance: 1}"


def test_a_probe_of_texts_has_no_choices() -> None:
    probe = parse(TEXTS.replace("flip_rate: ", WORDS).encode(), Path("people.yaml"), schemas())
    assert isinstance(probe, CounterfactualProbe)
    assert (probe.reading.choices, probe.reading.number) == ((), None)
    assert {prompt.request.answer_format for prompt in probe.prompts()} == {"text"}
    assert {prompt.choices for prompt in probe.prompts()} == {()}
    assert probe.fingerprint({})["answer"] not in (read(SCORES).fingerprint({})["answer"], "")


@pytest.mark.parametrize(
    ("answer", "audit", "said"),
    [
        ("{text: true, choices: [a, b]}", WORDS, "texts have no `choices`: remove `choices`, or remove `text`"),
        ("{text: true, judge: true}", WORDS, "texts have no `judge`"),
        ("{text: true, number: {min: 0, max: 1}}", WORDS, "numbers have no `text`: remove `text`, or remove `number`"),
        ("{text: true}", "flip_rate: ", "`flip_rate` needs choices as answers"),
        ("{text: true}", "impact_ratio: ", "`impact_ratio` needs choices or numbers as answers, but the answers of "),
        ("{text: true}", "accuracy: ", "`accuracy` needs choices as answers"),
        ("{text: true}", "mean_gap: {tolerance: 1}", "`mean_gap` needs numbers as answers"),
        ("{}", WORDS, "`score` needs texts as answers, `answer: {text: true}`"),
        ("{number: {min: 0, max: 1}}", WORDS, "`answer: {text: true}`, but the answers of this probe are numbers"),
    ],
)
def test_settings_of_texts_are_checked(answer: str, audit: str, said: str) -> None:
    written = SCORES.replace("{number: {min: 0, max: 100, unit: points}}", answer).replace("flip_rate: ", audit)
    with pytest.raises(ProbeError) as caught:
        parse(written.encode(), Path("people.yaml"), schemas())
    assert said in str(caught.value)


def test_texts_have_no_truth() -> None:
    written = TEXTS + 'truth: {column: income, positive: ">50K"}'
    with pytest.raises(
        ProbeError,
        match="`truth` needs choices as answers, but the answers of this probe are texts: remove `truth`",
    ):
        parse(written.replace("flip_rate: ", WORDS).encode(), Path("people.yaml"), schemas())


def test_numbers_have_no_truth() -> None:
    found = errors(SCORES + 'truth: {column: income, positive: ">50K"}\n')
    assert found == [
        "14:1: `truth` needs choices as answers, but the answers of this probe are numbers: remove `truth`"
    ]


def test_audits_of_choices_and_of_numbers_need_them() -> None:
    kinds_ = schemas()
    for text, audit, said in (
        (SCORES, "flip_rate", "choices as answers"),
        (SCORES, "flip_direction", "choices as answers"),
        (SCORES, "demographic_parity", "choices as answers"),
        (SCORES, "accuracy", "choices as answers"),
    ):
        with pytest.raises(ProbeError, match=said):
            parse(text.replace("flip_rate", audit).encode(), Path("people.yaml"), kinds_)


def test_recorded_numbers_are_read(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text(
        "\n".join(
            json.dumps({"id": record, "sex": sex, "answer": answer})
            for record, sex, answer in [
                ("a", "Male", 72.5), ("a", "Female", "Score: 70"), ("b", "Female", 0), ("b", "Male", None),
                ("c", "Male", "I'm sorry, but I can't help with that."), ("c", "Female", "80-90"),
            ]
        )
    )  # fmt: skip
    text = (
        SCORES.split("prompt:")[0]
        + "responses: {file: scores.jsonl}\n"
        + SCORES[SCORES.index("flip:") :].replace("  with: {relationship: {Husband: Wife}}\n", "")
    )
    probe = read(text, tmp_path / "scores.yaml")
    found = {
        (each.labels["record"], each.labels.get("to")): (each.status, each.content) for each in recorded_answers(probe)
    }
    assert found == {
        ("a", None): (Status.OK, 72.5),
        ("a", "Female"): (Status.OK, 70.0),
        ("b", None): (Status.OK, 0.0),
        ("b", "Male"): (Status.FAILED, None),
        ("c", None): (Status.REFUSED, None),
        ("c", "Female"): (Status.UNREADABLE, None),
    }
