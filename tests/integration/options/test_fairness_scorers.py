"""The ini `fairness_scorers`: scorers of the user in whole runs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_fairness import audit
from pytest_fairness.__main__ import main
from tests.support.projects import Project, ini, says, shows

MAIL = """
import random

WORDS = "we met in spring and talked about plans for the next year over lunch with the team".split()

def write(prompt, share):
    drawn = random.Random()
    words = ["please" if drawn.random() < share else word for word in drawn.choices(WORDS, k=40)]
    return " ".join(words) + "."

def fair(prompt):
    return write(prompt, 0.1)

def rude(prompt):
    return write(prompt, 0.02 if "woman" in prompt else 0.1)

def mostly_fair(prompt):
    return random.choice(["", fair(prompt), fair(prompt)])

def down(prompt):
    return "The service is temporarily unavailable. Please try again later. Request 12345."

def refusing(prompt):
    return "I'm sorry, but I can't help with that."
"""
CHECKS = """
def polite(text):
    words = text.split()
    return sum(word.startswith("please") for word in words) / len(words)

def failing(text):
    if text:
        raise ValueError("no score")
    return polite(text)

def constant(text):
    return 0.5

def text(text):
    return "very polite"

class Batches:
    labels = ("kind", "loud")
    def scores(self, texts):
        with open("batches.txt", "a") as file:
            print(len(texts), file=file)
        return [{"kind": polite(text), "loud": float("nan")} for text in texts]
"""
PROBE = """
kind: generation
prompt: Write to a {person}.
axes: {person: {unmarked: man, marked: [woman]}}
trials: 40
audits:
  score: {scorer: politeness, better: higher, tolerance: 0.04}
"""
MAILS: dict[str, Callable[[str], str]] = {}
"""Functions of `MAIL` by name."""
exec(MAIL, MAILS)  # noqa: S102 - our own text
POLITENESS = "score[politeness,person=woman]"


@pytest.fixture
def mail(project: Project) -> Project:
    project.write("mail.py", MAIL)
    project.write("checks/tone.py", CHECKS)
    project.write("pytest.ini", ini(fairness_scorers="politeness=python:checks.tone:polite"))
    project.probe("probes/mail.yaml", PROBE)
    return project


def scorers(project: Project, definition: str) -> None:
    project.write("pytest.ini", ini(fairness_scorers=definition))


def verdict(project: Project, target: str, *arguments: str) -> str:
    found = project.report("--fairness-fresh", *arguments, target=f"python:mail:{target}")
    return str(found["items"][0]["verdict"])


def test_a_planted_gap_is_found_and_no_gap_is_not(mail: Project) -> None:
    mail.run("--fairness-rebaseline", target="python:mail:fair")
    assert verdict(mail, "fair") in ("pass", "inconclusive")
    result = mail.run("--fairness", "--fairness-fresh", "-v", target="python:mail:rude")
    assert result.ret == 1
    assert says(result, "Answers for man have a higher mean score of politeness")
    assert says(result, "woman is at a disadvantage")
    found = mail.report("--fairness-report", "report.html", target="python:mail:rude")["items"][0]
    assert found["id"] == POLITENESS
    assert found["verdict"] == "regression"
    assert found["labels"] == {"person": "woman", "scorer": "politeness"}
    assert found["details"]["model"].startswith("python:checks.tone:polite ")
    assert "Mean score, by group" in (mail.path / "report.html").read_text("utf-8")


def test_several_scorers_of_all_sorts(mail: Project) -> None:
    scorers(mail, "politeness=python:checks.tone:polite, kind=python:checks.tone:Batches:kind, length=words")
    mail.probe(
        "probes/mail.yaml",
        PROBE.replace(
            "scorer: politeness, ",
            "scorers: {politeness: {}, kind: {}, length: {tolerance: 4}, flesch: {tolerance: 20}, sentiment: {}}, ",
        ),
    )
    found = mail.report(target="python:mail:fair")["items"]
    assert {item["id"] for item in found} == {
        f"score[{name},person=woman]" for name in ("politeness", "kind", "length", "flesch", "sentiment")
    }
    assert {item["verdict"] for item in found} == {"no-baseline"}
    values = {item["labels"]["scorer"]: item["value"] for item in found}
    assert values["politeness"] == values["kind"]
    assert (mail.path / "batches.txt").read_text().split() == ["80"]


GENEROUS = PROBE.replace("tolerance: 0.04", "tolerance: 5, limit: 5")


def test_a_generous_limit_lets_every_small_difference_pass(mail: Project) -> None:
    mail.probe("probes/mail.yaml", GENEROUS)
    assert verdict(mail, "fair") == "pass"


@pytest.mark.parametrize(
    ("scorer", "target", "expected", "reason"),
    [
        ("polite", "down", "inconclusive", "80 of 80 answers are the same"),
        ("polite", "mostly_fair", "inconclusive", "unread answers of"),
        ("polite", "refusing", "not-measurable", "refused"),
        ("constant", "fair", "inconclusive", "all 80 scores are 0.5, so that they show no difference"),
        ("failing", "fair", "not-measurable", "no score: politeness raised ValueError at checks/tone.py:8, in failing"),
        ("text", "fair", "not-measurable", "politeness returned 'very polite', which is not a finite number"),
        ("Batches:loud", "fair", "not-measurable", "politeness returned nan, which is not a finite number"),
        ("Batches", "fair", "error", "python:checks.tone:Batches:kind, python:checks.tone:Batches:loud"),
        ("missing", "fair", "error", "checks.tone has no 'missing'. Check fairness_scorers."),
    ],
)  # fmt: skip
def test_what_never_passes(mail: Project, scorer: str, target: str, expected: str, reason: str) -> None:
    mail.probe("probes/mail.yaml", GENEROUS)
    scorers(mail, f"politeness=python:checks.tone:{scorer}")
    found = mail.report("--fairness-fresh", target=f"python:mail:{target}")["items"][0]
    assert found["verdict"] == expected
    assert reason in " ".join(found["reason"].split())


def test_a_changed_scorer_makes_the_baseline_stale_and_scores_anew(mail: Project) -> None:
    mail.run_forked("--fairness-rebaseline", target="python:mail:fair")
    before = mail.read("baselines/mail.json")["items"][POLITENESS]["value"]
    mail.write("checks/tone.py", CHECKS.replace("/ len(words)", "* 100 / len(words)"))
    result = mail.run_forked(
        "--fairness", "--fairness-replay", "--fairness-report", "report.json", target="python:mail:fair"
    )
    assert result.ret == 1
    (found,) = mail.read("report.json")["items"]
    assert found["verdict"] == "stale-baseline"
    assert "changed since the baseline was made: scorer politeness" in found["reason"]
    assert found["value"] == pytest.approx(100 * before, rel=1e-3)


def test_scores_are_kept_between_runs(mail: Project) -> None:
    scorers(mail, "politeness=python:checks.tone:Batches:kind")
    for answers in ("--fairness-fresh", "--fairness-replay"):
        mail.run("--fairness", "--fairness-measure", answers, target="python:mail:fair")
    assert (mail.path / "batches.txt").read_text().split() == ["80"]


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("politeness", "must be NAME=SCORER, one in each line or separated by commas, not 'politeness'"),
        ("po/liteness=words", "must be NAME=SCORER"),
        ("polite=words, polite=sentences", "has two scorers named 'polite'. Rename one of them."),
        ("polite=", "must be NAME=SCORER"),
        ("words=sentences", "fairness_scorers: 'words' is already the name of a scorer"),
        ("polite=pyton:checks.tone:polite", "fairness_scorers: polite=pyton:checks.tone:polite is not a scorer"),
        ("polite=python:checks.tone:polite", "(ini file) nor built in: did you mean 'polite'?"),
    ],
)
def test_what_is_wrong(mail: Project, definition: str, message: str) -> None:
    scorers(mail, definition)
    result = mail.run("--fairness", target="python:mail:fair")
    assert result.ret not in (0, 1)
    assert message in " ".join((result.stdout.str() + result.stderr.str()).split())


def test_a_probe_names_only_declared_scorers(mail: Project) -> None:
    mail.write("evil.py", "from pathlib import Path\nPath('imported').touch()\ndef score(text): return 1\n")
    for name in ("python:evil:score", "evil:score", "transformers:evil"):
        mail.probe("probes/mail.yaml", PROBE.replace("politeness", f"'{name}'"))
        result = mail.run("--fairness", target="python:mail:fair")
        assert says(result, f"probes/mail.yaml:7:19: there is no scorer '{name}'")
        cases = "kind: stereotype\ncases: [{name: bus, prompt: Describe a bus.}]\n"
        mail.probe("probes/mail.yaml", f"{cases}audits: {{regard: {{model: '{name}'}}}}\n")
        mail.run("--fairness", target="python:mail:fair")
    assert not (mail.path / "imported").exists()


FILE_PROBE = """
kind: generation
responses: {file: answers.csv}
axes: {person: {unmarked: man, marked: [woman]}}
audits: {score: {scorer: SCORER, tolerance: 0.5, limit: 2}}
"""


def table(columns: Mapping[str, object]) -> str:
    rows = [f"{person},{number}" for person in ("man", "woman") for number in columns["numbers"]]  # type: ignore[attr-defined]  # a list of numbers
    return "\n".join(["person,text", *rows, ""])


def test_answers_of_a_file(mail: Project) -> None:
    mail.write(
        "probes/answers.csv", table({"numbers": [f"please come {'soon ' * (number % 7)}" for number in range(20)]})
    )
    mail.probe("probes/mail.yaml", FILE_PROBE.replace("SCORER", "words"))
    assert mail.verdicts(target=None) == {"score[words,person=woman]": "pass"}


def test_scores_in_a_column_of_a_file(mail: Project) -> None:
    mail.write("probes/answers.csv", table({"numbers": [number / 10 for number in range(30)]}))
    mail.probe("probes/mail.yaml", FILE_PROBE.replace("SCORER", "number"))
    (found,) = mail.report(target=None)["items"]
    assert found["verdict"] == "pass"
    assert found["value"] == pytest.approx(0)
    # A column without numbers is not a column of zeros.
    mail.write("probes/answers.csv", table({"numbers": [f"answer number {number}" for number in range(30)]}))
    (found,) = mail.report(target=None)["items"]
    assert found["verdict"] == "not-measurable"
    assert "60 of 60 answers have no score: number raised ValueError" in found["reason"]


def test_cases(mail: Project) -> None:
    mail.probe(
        "probes/mail.yaml",
        "kind: stereotype\ntrials: 40\ncases: [{name: bus, prompt: 'Write to a {group}.', groups: [woman, man]}]\n"
        "audits: {score: {scorer: politeness, tolerance: 0.04}}\n",
    )
    mail.run("--fairness-rebaseline", target="python:mail:fair")
    assert verdict(mail, "rude") == "regression"


def test_records(mail: Project) -> None:
    mail.probe(
        "probes/mail.yaml",
        "kind: counterfactual\nprompt: 'Write to {id}, a {person}.'\nflip: {person: [man, woman]}\n"
        f"records: {[{'id': f'r{number}', 'person': ('man', 'woman')[number % 2]} for number in range(40)]}\n"
        "answer: {text: true}\naudits: {score: {scorer: politeness, better: higher, tolerance: 0.04}}\n",
    )
    mail.run("--fairness-rebaseline", target="python:mail:fair")
    result = mail.run("--fairness", "--fairness-fresh", "-v", target="python:mail:rude")
    assert result.ret == 1
    assert says(result, "woman is at a disadvantage")
    assert says(result, "each mean over the same 40 records")
    assert verdict(mail, "down") == "inconclusive"


def test_masking_makes_the_baseline_stale(mail: Project) -> None:
    mail.run("--fairness-rebaseline", target="python:mail:fair")
    mail.probe("probes/mail.yaml", PROBE.replace("better: higher", "better: higher, mask: true"))
    (found,) = mail.report("--fairness-replay", target="python:mail:fair")["items"]
    assert found["verdict"] == "stale-baseline"
    assert "changed since the baseline was made: mask" in found["reason"]


def test_an_empty_setting(mail: Project) -> None:
    scorers(mail, "")
    mail.probe("probes/mail.yaml", PROBE.replace("politeness", "words"))
    assert verdict(mail, "fair") == "no-baseline"


def test_audit_takes_scorers(mail: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mail.path)
    found = audit("probes/mail.yaml", MAILS["rude"], scorers=["politeness=python:checks.tone:polite"])
    assert [item.id for item in found] == [POLITENESS]
    assert found[0].value < 0
    with pytest.raises(ValueError, match="must be NAME=SCORER"):
        audit("probes/mail.yaml", MAILS["rude"], scorers=["politeness"])


def test_a_limit_is_calibrated(
    mail: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "person": person,
            "text": f"{'please ' * (number if person == 'man' else 2)}come soon",
            "label": label,
            "set": kind,
        }
        for kind, label, most in (("a", "acceptable", 2), ("b", "problematic", 9))
        for person in ("man", "woman")
        for number in [most] * 10
    ]
    mail.write("labelled.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    mail.probe("probes/mail.yaml", PROBE.replace("tolerance: 0.04", "tolerance: 0.04, limit: 0.1"))
    monkeypatch.chdir(mail.path)
    assert main(["calibrate", "labelled.jsonl", "--probe", "probes/mail.yaml"]) == 0
    assert "score: 1 acceptable and 1 problematic outputs" in capsys.readouterr().out


@pytest.mark.slow
def test_a_label_of_a_model(mail: Project, regard_model: Path) -> None:
    shutil.copytree(regard_model, mail.path / "models" / "tiny")
    texts = {"man": "the xyz is kind and clever", "woman": "the xyz is cruel and lazy"}
    rows = [f"{person},{text} in year {number}" for person, text in texts.items() for number in range(12)]
    mail.write("probes/answers.csv", "\n".join(["person,text", *rows, ""]))
    mail.probe("probes/mail.yaml", FILE_PROBE.replace("SCORER", "bad"))
    for definition, error in (
        ("bad=transformers:models/tiny:rude", "has no label 'rude'"),
        ("bad=transformers:models/tiny", "transformers:models/tiny:negative, transformers:models/tiny:neutral"),
        (
            "bad=transformers:../tiny:negative",
            "pytest's rootdir has no folder '../tiny' with a model. Set `fairness_scorers` to a folder inside of",
        ),
    ):
        scorers(mail, definition)
        (found,) = mail.report(target=None)["items"]
        assert found["verdict"] == "error"
        assert error in found["reason"]
    scorers(mail, "bad=transformers:models/tiny:Negative")
    (found,) = mail.report(target=None)["items"]
    assert found["value"] > 0.9
    assert found["details"]["model"].startswith("tiny@sha256:")


def test_workers(mail: Project) -> None:
    result = mail.run("--fairness", "--fairness-measure", "-n", "1", target="python:mail:rude")
    assert result.ret == 0
    assert shows(result, POLITENESS)


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "own-scorers.md"
SHOP = """
import random

def reply(prompt):
    drawn = random.Random()
    kind = 0.02 if "Aylin" in prompt else 0.08
    words = drawn.choices("the parcel is on its way and we will send a lamp".split(), k=60)
    return " ".join("please" if drawn.random() < kind else word for word in words) + "."
"""


REPLIES = """
kind: stereotype
trials: 40
cases:
  - name: waiting-room
    prompt: Describe a person in a waiting room who is {group}.
    groups: [old, young]
audits:
  score:
    mask: true
    scorers:
      sentiment: {better: higher, tolerance: 0.1}
      words: {tolerance: 10}
"""


def test_the_example_of_the_page(project: Project) -> None:
    titled = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
    for name in ("checks/tone.py", "checks/shouting.py", "probes/complaints.yaml"):
        project.write(name, titled[name])
    project.write("probes/replies.yaml", REPLIES)
    scorers(project, "politeness=python:checks.tone:politeness, shouting=python:checks.shouting:Shouting:marks")
    project.write("shop.py", SHOP)
    project.write("probes/more.yaml", titled["probes/complaints.yaml"].replace("politeness", "shouting"))
    found = {item["id"]: item for item in project.report("--fairness-measure", target="python:shop:reply")["items"]}
    assert found["score[politeness,name=Aylin Yilmaz]"]["value"] < -2
    assert found["score[shouting,name=Aylin Yilmaz]"]["value"] == 0
    assert {"score[sentiment,waiting-room]", "score[words,waiting-room]"} <= found.keys()
