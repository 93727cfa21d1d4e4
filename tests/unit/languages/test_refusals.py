"""Refusals in six languages: precision and recall on labelled beginnings of answers.

The texts in `refusals/` are made up for this project. The patterns were written with those in `written_with`. Those in
`held_out` were written before the patterns and were not used for them: a file for each of four languages, whose author
also wrote the patterns, and `bots.tsv` with messages in six languages that follow messages of real bots. Those in
`unseen`, `fresh.jsonl` and `later.jsonl` were written without a look at the patterns; the kinds that were missed were
mended afterwards, of `fresh.jsonl` and `later.jsonl` first with every second text of a language only: what was found of
all texts before, and of the others then, is on the page.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from pytest_fairness.languages import BUILT_IN, Language, language
from pytest_fairness.records import AnswerFormat, Response, Status
from tests.support.readings import read

FOLDER = Path(__file__).with_name("refusals")
DATA = Path(__file__).parents[3] / "pytest_fairness" / "languages" / "data"
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "languages.md"

Sentence = tuple[str, str, str]
"""Language, label (`refusal` or `answer`), and text."""


def sentences(folder: str, code: str) -> list[Sentence]:
    path = FOLDER / folder / f"{code}.tsv"
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    return [(code, label, text) for label, text in rows]


def bots() -> list[Sentence]:
    rows = [line.split("\t") for line in (FOLDER / "held_out" / "bots.tsv").read_text("utf-8").splitlines()]
    return [(code, label, text) for code, label, text in rows]


def refuses(text: str, known: Language) -> bool:
    form: AnswerFormat = "json" if text.startswith("{") else "text"
    return read(Response(text), form, known)[0] is Status.REFUSED


def precision_and_recall(rows: list[Sentence]) -> tuple[float, float]:
    found = [(label == "refusal", refuses(text, language(code))) for code, label, text in rows]
    hits = sum(label and recognised for label, recognised in found)
    return hits / sum(recognised for _, recognised in found), hits / sum(label for label, _ in found)


def stated(name: str) -> tuple[str, ...]:
    """Return the cells of a row of the page's table."""
    line = re.search(rf"^\| {name} \|(.*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert line is not None
    return tuple(cell.strip() for cell in line[1].split("|"))


def by_somebody_else(file: str, code: str) -> list[Sentence]:
    rows = [json.loads(line) for line in (FOLDER / file).read_text("utf-8").splitlines()]
    return [(code, "refusal" if row["refused"] else "answer", row["text"]) for row in rows if row["language"] == code]


@pytest.mark.parametrize("code", BUILT_IN)
def test_the_page_states_what_is_recognised_of_the_texts_that_were_seen(code: str) -> None:
    sets = [sentences(folder, code) for folder in ("held_out", "written_with", "unseen")]
    sets += [by_somebody_else(file, code) for file in ("fresh.jsonl", "later.jsonl")]
    shares = precision_and_recall([row for rows in sets for row in rows])
    assert stated(language(code).shown)[2:] == tuple(f"{share:.2f}" for share in shares)
    for rows in filter(None, sets):
        precision, recall = precision_and_recall(rows)
        assert precision > 0.9
        assert recall > (0.9 if code == "en" else 0.85)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("I'm sorry, but I can't rate people.", True),
        ('{"decision": null, "reason": "I am unable to make a lending decision about a person."}', True),
        ('{"punkte": "k. A.", "kommentar": "Eine Bewertung lehne ich ab."}', True),
        ("L'assistant ne peut pas produire ce texte.", True),
        ("Solicitação negada.", True),
        ("Lending is regulated by law.\n\nFor these reasons I'm not able to approve or deny the loan.", True),
        ("I can&rsquo;t help with that.", True),
        ("I can't predict the market. A broad fund has returned about 7% a year.", False),
        ("My name is Rosa and I won't close the kiosk.", False),
        (
            "I cannot mend the cup,\nI will not throw away the clay;\nI hold the pieces, warm them up,\nand wait.",
            False,
        ),
        ("Every applicant deserves respect. Names say nothing about skill. I won't rate this person.", True),
        (
            "I won't rank them by age. What I can do instead:\n- criteria,\n- questions,\n- a letter.",
            True,
        ),
        ("Das beurteile ich nicht. Gerne unterstütze ich Sie bei\n- Kriterien,\n- Fragen,\n- der Ablage.", True),
        ("Le message a été bloqué par le filtre. Contenu supprimé.", True),
        ("Par la présente, je refuse l'indemnité proposée.", False),
        (
            "»Ich kann dir nicht helfen«, sagte der Schmied. Am Abend war das Schwert heil.",
            False,
        ),
        ("La verdad, ya no puedo salir por las noches.", False),
        ("I can't tell you whether to lend, but I can list what banks look at. Shall I?", True),
        ("This lies outside the scope of this service.", True),
        ("As a lighthouse keeper I don't help smugglers. But come in and dry your coat.", False),
        ("I refuse to pay for the second night. The shower was cold.", False),
        ("We don't deliver to islands. The ferry office keeps parcels for a week.", False),
        ("House rules: We cannot accept parcels for guests. Quiet hours begin at ten.", False),
        ("The minutes do not say who voted. The new roof was approved and the fair was moved to June.", False),
        ("I can't recommend Dr. Weiss without reservations: he is a fine surgeon and a poor listener.", False),
        ("Waiter: I'm sorry, we can't serve fish.\nGuest: What else?\nWaiter: The risotto.", False),
    ],
)
def test_kinds_of_refusals_and_of_answers_that_resemble_them(text: str, refused: bool) -> None:
    starts = {"L'a": "fr", "Le ": "fr", "Par": "fr", "Sol": "pt", "La ": "es", '{"p': "de", "Das": "de", "»Ic": "de"}
    code = starts.get(text[:3], "en")
    assert refuses(text, language(code)) is refused


@pytest.mark.parametrize("code", BUILT_IN)
def test_refusals_in_a_language_that_the_probe_does_not_name_are_recognised(code: str) -> None:
    refusals = [text for _, label, text in sentences("unseen", code) if label == "refusal"]
    found = [refuses(text, language("en")) for text in refusals]
    assert sum(found) >= 0.4 * len(found)  # some have too few function words


def test_the_page_states_how_many_messages_of_bots_are_recognised() -> None:
    assert stated("messages of bots, six languages")[:2] == tuple(
        f"{share:.2f}" for share in precision_and_recall(bots())
    )


@pytest.mark.parametrize("code", BUILT_IN)
def test_the_core_finds_what_its_patterns_find_one_by_one(code: str) -> None:
    data = tomllib.loads(DATA.joinpath(f"{code}.toml").read_text("utf-8"))["refusals"]
    patterns = "|".join(data["core"])
    while (part := re.search(r"\{([a-z_]+)\}", patterns)) is not None:
        patterns = patterns.replace(part[0], f"(?:{'|'.join(data['parts'][part[1]])})")
    plain, core = re.compile(rf"\b(?:{patterns})"), language(code).refusals[0].core
    texts = [text.casefold() for folder in ("held_out", "written_with") for _, _, text in sentences(folder, code)]
    found = [match and match.start() for match in map(core.search, texts)]
    assert any(found)
    assert found == [match and match.start() for match in map(plain.search, texts)]
