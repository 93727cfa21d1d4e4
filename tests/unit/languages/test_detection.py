"""Detection of texts in other languages than the declared ones."""

# ruff: noqa: RUF001 - they are in other scripts

from __future__ import annotations

import json
import random
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_fairness.languages import foreign_shares, other_language

NEW_MODEL = pytest.mark.skipif(version("py3langid") < "0.4", reason="the model of py3langid 0.2 judges such lists")
REFUSALS = {
    "German": "Es tut mir leid, aber dabei kann ich Ihnen nicht helfen.",
    "French": "Je suis désolé, mais je ne peux pas vous aider avec cette demande.",
    "Spanish": "Lo siento, pero no puedo ayudarte con eso.",
    "Italian": "Mi dispiace, non posso aiutarti.",
    "Portuguese": "Desculpe, não posso ajudar com isso.",
    "Dutch": "Ik kan je daar niet mee helpen.",
    "Polish": "Nie mogę w tym pomóc.",
    "Turkish": "Üzgünüm, bu konuda yardımcı olamam.",
    "Russian": "Извините, я не могу помочь с этим.",
    "Chinese": "抱歉，我无法协助处理此请求。",
    "Japanese": "申し訳ありませんが、お手伝いできません。",
    "Korean": "죄송하지만 도와드릴 수 없습니다.",
    "Arabic": "عذراً، لا أستطيع المساعدة في هذا الطلب.",
    "Hindi": "मुझे खेद है, मैं इसमें मदद नहीं कर सकता।",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_of_one_sentence_is_found(name: str) -> None:
    assert other_language(REFUSALS[name], ["en"]) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes.",
        "Nein.",
        pytest.param("The Godfather; Amélie; La vita è bella", marks=NEW_MODEL),
        "Muhammad Ali, José García, Lakshmi Patel, François Dupont",
        "def f(x): return x + 1",
        "SELECT name FROM users WHERE id = 3",
        "I recommend tacos al pastor, mole poblano, chiles en nogada and pan de muerto.",
        pytest.param("1. Yoga mats\n2. Yoga mat\n3. Yoga mat\n4. Yoga mat", marks=NEW_MODEL),
        "aaaa bbbb cccc dddd eeee",
        "\ud83d \x00 12345 %%%%",
    ],
)
def test_what_is_english_short_or_no_text_is_not_judged(text: str) -> None:
    assert other_language(text, ["en"]) is None


@pytest.mark.parametrize("name", ["letters", "stereotypes", "winobias"])
def test_recorded_english_answers_are_english(name: str) -> None:
    path = Path(__file__).parents[3] / f"baselines/{name}.responses.jsonl"
    texts = [json.loads(line)["text"] for line in path.read_bytes().splitlines()[1:]]
    assert foreign_shares({"": [text for text in texts if text]}, ["en"]) == {"": {}}


def test_shares_do_not_depend_on_the_order_of_many_answers() -> None:
    texts = [f"{text} {number}" for number in range(100) for text in REFUSALS.values()]
    shuffled = random.Random(1).sample(texts, len(texts))  # noqa: S311 no secret depends on it
    shares = foreign_shares({"group": texts}, ["en"])
    assert shares == foreign_shares({"group": shuffled}, ["en"])
    assert sum(shares["group"].values()) == pytest.approx(1.0, abs=0.01)


def test_other_scripts_are_not_english_whatever_their_language() -> None:
    georgian = "".join(chr(0x10D0 + (7 * place) % 33) if place % 6 else " " for place in range(60))
    assert other_language(georgian, ["en"]) == "another language"


def test_a_declared_language_is_not_another_one() -> None:
    declared = ["de", "fr"]
    assert other_language(REFUSALS["German"], declared) is None
    assert other_language(REFUSALS["French"], declared) is None
    assert other_language(REFUSALS["Spanish"], declared) == "Spanish"
    assert other_language("I am sorry, but I cannot help you with this request.", declared) == "English"
