"""Prompts in a file: each one is a stratum of the text audits, and runs are compared on the prompts that both have."""

from __future__ import annotations

from tests.support.projects import Project

PROBE = """
kind: generation
prompts: {file: log.csv, sample: 40, seed: 1}
axes:
  name: {unmarked: Anna, marked: [Aisha]}
audits:
  jsd: {tolerance: 0.02}
  marked_words:
  mmd:
  svm:
  refusals:
"""
APP = """
import random
from zlib import crc32

WORDS = "lamp chair table sofa desk clock mirror vase rug shelf stool bench plant candle".split()

def fair(prompt):
    draw = random.Random(crc32(prompt.encode()))
    return f"About {prompt.split()[-1]}: " + " ".join(draw.choices(WORDS, k=20))

def biased(prompt):
    return fair(prompt) + (" cheap second hand" if "Aisha" in prompt else "")
"""


def log(first: int = 0) -> str:
    return "text\n" + "".join(f"What would suit {{name}} for topic{number}\n" for number in range(first, first + 40))


def test_a_difference_in_answers_to_a_log_of_prompts_is_found(project: Project) -> None:
    project.write("app.py", APP)
    project.probe(text=PROBE)
    project.write("probes/log.csv", log())
    project.run("--fairness-rebaseline", target="python:app:fair").assert_outcomes(passed=5)
    fair = project.verdicts(target="python:app:fair")
    assert set(fair.values()) <= {"pass", "inconclusive"}
    assert fair["refusals[name=Aisha]"] == "pass"
    biased = project.verdicts(target="python:app:biased")
    assert {name.partition("[")[0] for name, verdict in biased.items() if verdict == "regression"} >= {
        "jsd",
        "marked_words",
        "mmd",
        "svm",
    }
    # Runs without a common prompt cannot be compared.
    project.write("probes/log.csv", log(first=100))
    assert "pass" not in project.verdicts(target="python:app:fair").values()
