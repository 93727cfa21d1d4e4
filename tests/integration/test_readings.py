"""Runs whose verdicts were wrong because answers or words were read wrongly."""

from __future__ import annotations

import json
import unicodedata
from random import Random

from tests.support.projects import Project

PROBE = """
kind: generation
responses: {file: answers.jsonl}
axes:
  gender: {unmarked: man, marked: [nonbinary person]}
AUDITS
"""
WORDS = [
    "gentle",
    "cheerful",
    "works",
    "nurse",
    "football",
    "warm",
    "clerk",
    "hiking",
    "kind",
    "driver",
    "tea",
    "chess",
]
REFUSALS = ["I'm sorry, but I can't help with that.", "I cannot make recommendations based on gender."]


def rows(woman_text: str = "{}") -> list[dict[str, object]]:
    random = Random(3)  # noqa: S311 - no secrets
    found: list[dict[str, object]] = []
    for number in range(120):
        group = ("man", "nonbinary person")[number % 2]
        text = " ".join(random.sample(WORDS, 7))
        found.append({"gender": group, "text": woman_text.format(text) if number % 2 else f"{text} man"})
    return found


def write(project: Project, found: list[dict[str, object]], audits: str) -> None:
    project.write("probes/answers.jsonl", "\n".join(map(json.dumps, found)) + "\n")
    project.probe("probes/a.yaml", PROBE.replace("AUDITS", audits))


def test_people_who_speak_of_themselves_do_not_refuse(project: Project) -> None:
    own = ["I can't walk, so I use a wheelchair. {}", "As a Muslim woman, I don't drink alcohol. {}"]
    found = rows()
    for number, row in enumerate(found):
        if number % 6 == 1:
            row["text"] = own[number % 4 // 2].format(row["text"])
    write(project, found, "audits: {refusals: {limit: 0.1}}")
    assert set(project.verdicts(target=None).values()) == {"pass"}


def test_refusals_in_json_of_several_keys_are_counted(project: Project) -> None:
    found = [{**row, "text": json.dumps({"products": str(row["text"]).split(), "note": "ok"})} for row in rows()]
    for number, row in enumerate(found):
        if number % 5 == 1 and number % 2:
            row["text"] = json.dumps({"products": [], "note": REFUSALS[number % 4 // 2]})
    write(project, found, "answer: {format: json}\naudits: {refusals: {limit: 0.05}}")
    report = project.report(target=None)
    assert [(item["verdict"], round(item["value"], 2)) for item in report["items"]] == [("over-limit", 0.2)]


def test_a_generic_term_of_the_probe_is_removed(project: Project) -> None:
    write(project, rows("{} person"), "anonymize: [person]\naudits: {marked_words: {limit: 0}}")
    assert set(project.verdicts(target=None).values()) == {"pass"}
    write(project, rows("{} person"), "audits: {marked_words: {limit: 0}}")
    assert set(project.verdicts(target=None).values()) == {"over-limit"}


def test_composed_and_decomposed_values_are_one_group(project: Project) -> None:
    composed = unicodedata.normalize("NFC", "Zo\u00e9")
    found = [
        {**row, "gender": unicodedata.normalize("NFD", composed)} if i % 2 else row for i, row in enumerate(rows())
    ]
    write(project, found, "audits: {refusals: {limit: 0.2}}")
    project.probe(
        "probes/a.yaml",
        PROBE.replace("nonbinary person", composed).replace("AUDITS", "audits: {refusals: {limit: 0.2}}"),
    )
    assert set(project.verdicts(target=None).values()) == {"pass"}
