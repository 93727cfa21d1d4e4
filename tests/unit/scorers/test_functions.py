"""Scorers: functions and objects of the user, built-in scorers, and texts that cannot be scored."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness import scorers
from pytest_fairness.errors import FairnessError, ModelError
from pytest_fairness.scorers import FunctionScorer, ObjectScorer, Scorer


def scores_of(scorer: Scorer, texts: Sequence[str]) -> list[dict[str, float] | str]:
    """Return the scores by all labels."""
    return scorers.scores_of(scorer, texts, scorer.labels)


class Broken:
    """Scorer whose batch fails as a whole if one of its texts is bad."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def scores(self, texts: Sequence[str]) -> list[float]:
        self.batches.append(len(texts))
        if any(text == "bad" for text in texts):
            raise RuntimeError("out of memory")
        return [float(len(text)) for text in texts]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Write modules into a folder from which scorers are imported; return the function that writes a module."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}

    def write(source: str, name: str = "tone") -> str:
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, "utf-8")
        for other in {*sys.modules} - before:
            if str(getattr(sys.modules[other], "__file__", "")).startswith(str(tmp_path)):
                del sys.modules[other]
        scorers.open_scorer.cache_clear()
        return name

    yield write
    write("", "empty")


def identity(folder: Path, definition: str = "python:tone:score") -> str:
    return scorers.open_scorer(definition, folder)[0].identity


@pytest.mark.parametrize("score", [0.5, 1, True, np.float32(2), np.int64(3), Decimal("0.25"), np.bool_(False)])
def test_any_finite_number_is_a_score(score: Any) -> None:
    assert scores_of(FunctionScorer("one", lambda _: score), ["text"]) == [{"score": float(score)}]


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (math.nan, "returned nan, which is not a finite number"),
        (math.inf, "returned inf"),
        (-1e101, "returned -1e+101, which is not a finite number (of at most 1e+100)"),
        ("0.5", "returned '0.5'"),
        (b"1", "returned b'1'"),
        (None, "returned None"),
        ([0.5], "returned [0.5]"),
        (10**400, "returned 1000"),
        ({"other": 1.0}, "returned no score for the label 'score'"),
        (1j, "returned 1j"),
    ],
)
def test_anything_else_is_a_missing_score(score: Any, message: str) -> None:
    (found,) = scores_of(FunctionScorer("one", lambda _: score), ["text"])
    assert isinstance(found, str)
    assert found.startswith(message)


def test_an_exception_is_a_missing_score_of_its_text_only() -> None:
    def score(text: str) -> float:
        return 1 / len(text)

    found = scores_of(FunctionScorer("one", score), ["text", "", "a"])
    assert found[::2] == [{"score": 0.25}, {"score": 1.0}]
    assert isinstance(found[1], str)
    assert found[1].startswith("raised ZeroDivisionError at ")
    assert found[1].endswith(", in score: division by zero")


@pytest.mark.parametrize("raised", [SystemExit(0), pytest.skip.Exception("no"), RecursionError()])
def test_a_function_ends_neither_the_run_nor_its_test(raised: BaseException) -> None:
    def score(text: str) -> float:
        raise raised

    (found,) = scores_of(FunctionScorer("one", score), ["text"])
    assert isinstance(found, str)
    assert type(raised).__name__ in found


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), pytest.fail.Exception("Timeout")])
def test_an_interruption_and_a_time_limit_end_the_test(raised: BaseException) -> None:
    def score(text: str) -> float:
        raise raised

    with pytest.raises(type(raised)):
        scores_of(FunctionScorer("one", score), ["text"])


def test_a_failed_batch_is_scored_text_by_text() -> None:
    broken = Broken()
    found = scores_of(ObjectScorer("one", broken), ["a", "bad", "abc"])
    assert found[::2] == [{"score": 1.0}, {"score": 3.0}]
    assert "raised RuntimeError" in str(found[1])
    assert broken.batches == [3, 1, 1, 1]
    broken.batches.clear()
    scores_of(ObjectScorer("one", broken), ["a", "b"])
    assert broken.batches == [2]


def test_a_scorer_must_return_a_score_for_each_text() -> None:
    class Short:
        def scores(self, texts: Sequence[str]) -> list[float]:
            return [1.0]

    with pytest.raises(ModelError, match="one returned 1 scores for 2 texts"):
        scores_of(ObjectScorer("one", Short()), ["a", "b"])


@given(st.lists(st.text(), max_size=8), st.floats(allow_nan=True, allow_infinity=True))
def test_every_text_gets_a_finite_score_or_a_reason(texts: list[str], score: float) -> None:
    found = scores_of(FunctionScorer("one", lambda _: score), texts)
    assert len(found) == len(texts)
    assert all(isinstance(each, str) or math.isfinite(each["score"]) for each in found)


def test_a_function_in_a_module(module: Callable[..., str], tmp_path: Path) -> None:
    module("def score(text):\n    return len(text)\n")
    scorer, label = scorers.open_scorer("python:tone:score", tmp_path)
    assert label == "score"
    assert scores_of(scorer, ["four"]) == [{"score": 4.0}]
    assert scorer.identity.startswith("python:tone:score ")
    assert scorers.open_scorer("python:tone:score", tmp_path)[0] is scorer


def test_an_object_with_labels(module: Callable[..., str], tmp_path: Path) -> None:
    module(
        "class Tone:\n    labels = ['Loud', 'Kind']\n    identity = '2'\n"
        "    def scores(self, texts):\n        return [{'Loud': 1, 'Kind': len(text)} for text in texts]\n"
        "tone = Tone()\n"
    )
    for name in ("Tone", "tone"):
        scorer, label = scorers.open_scorer(f"python:tone:{name}:Loud", tmp_path)
        assert label == "loud"
        assert scorer.identity == f"python:tone:{name} 2"
        assert scores_of(scorer, ["four"]) == [{"loud": 1.0, "kind": 4.0}]


def test_a_score_by_another_label_may_be_missing() -> None:
    class Tone:
        labels = ("loud", "kind")

        def scores(self, texts: Sequence[str]) -> list[dict[str, float]]:
            return [{"loud": 1.0, "kind": math.nan} for _ in texts]

    tone = ObjectScorer("one", Tone())
    assert scorers.scores_of(tone, ["text"], ["loud"]) == [{"loud": 1.0}]
    (found,) = scorers.scores_of(tone, ["text"], ["kind"])
    assert found == "returned nan, which is not a finite number (of at most 1e+100)"


def test_a_changed_function_has_another_identity(module: Callable[..., str], tmp_path: Path) -> None:
    source = "import os\nimport numpy\nfrom words import POLITE\n\ndef score(text):\n    return len(text)\n"
    module("POLITE = 1\n", "words")
    module(source)
    first = identity(tmp_path)
    module(source)
    assert identity(tmp_path) == first
    module(source.replace("len(text)", "len(text) + 1"))
    second = identity(tmp_path)
    assert second != first
    module(source)
    assert identity(tmp_path) == first
    module("POLITE = 2\n", "words")
    assert identity(tmp_path) not in (first, second)


def test_modules_of_the_same_package_count(module: Callable[..., str], tmp_path: Path) -> None:
    module("", "checks.__init__")
    module("def near(text):\n    return 1\n", "checks.near")
    module(
        "from .near import near\nfrom . import near as other\n\ndef score(text):\n    return near(text)\n",
        "checks.tone",
    )
    first = identity(tmp_path, "python:checks.tone:score")
    module("def near(text):\n    return 2\n", "checks.near")
    assert identity(tmp_path, "python:checks.tone:score") != first


def test_an_identity_replaces_the_digest(module: Callable[..., str], tmp_path: Path) -> None:
    module("def score(text):\n    return 1\n\nscore.identity = 'tone 1'\n")
    assert identity(tmp_path) == "python:tone:score tone 1"


@pytest.mark.parametrize(
    ("source", "definition", "message"),
    [
        ("", "python:tone:score", "python:tone:score: tone has no 'score'. Check fairness_scorers."),
        ("", "python:tune:score", "there is no module 'tune'"),
        ("import nothing_like_it", "python:tone:score", "importing tone needs 'nothing_like_it'"),
        ("1 / 0", "python:tone:score", "importing tone raised ZeroDivisionError"),
        ("score = 1", "python:tone:score", "is neither a function nor an object with the method `scores`"),
        ("async def score(text): ...", "python:tone:score", "is asynchronous"),
        ("def score(): ...", "python:tone:score", "must take the text as its only required argument"),
        ("class Tone:\n    def __init__(self, size): ...", "python:tone:Tone", "the class cannot be called"),
        ("", "python:tone", "names no callable"),
        ("", "python:tone:a b", "names no callable"),
    ],
)
def test_a_definition_that_is_no_scorer(
    module: Callable[..., str], tmp_path: Path, source: str, definition: str, message: str
) -> None:
    module(source)
    with pytest.raises(ModelError) as error:
        scorers.open_scorer(definition, tmp_path)
    assert message in str(error.value)


def test_several_labels_need_a_choice(module: Callable[..., str], tmp_path: Path) -> None:
    module("class Tone:\n    labels = ('loud', 'kind')\n    def scores(self, texts): ...\n")
    with pytest.raises(ModelError, match="fairness_scorers: python:tone:Tone:loud, python:tone:Tone:kind"):
        scorers.open_scorer("python:tone:Tone", tmp_path)
    with pytest.raises(ModelError, match="has no label 'rude'"):
        scorers.open_scorer("python:tone:Tone:rude", tmp_path)
    with pytest.raises(ModelError, match=r"words 1 has no label 'long'. Name one of its labels: score"):
        scorers.open_scorer("words:long", tmp_path)


def test_names_of_scorers() -> None:
    known = scorers.known_scorers({"politeness": "python:checks.tone:score", "length": "words"})
    assert known["politeness"] == "python:checks.tone:score"
    assert {*scorers.BUILT_IN} <= known.keys()


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"words": "python:a:b"}, "'words' is already the name of a scorer"),
        ({"mine": "pyton:a:b"}, "mine=pyton:a:b is not a scorer"),
        ({"mine": "python:"}, "mine=python: is not a scorer"),
        ({"mine": "unitary/toxic-bert"}, "is not a scorer"),
    ],
)
def test_definitions_that_are_wrong(declared: dict[str, str], message: str) -> None:
    with pytest.raises(FairnessError) as error:
        scorers.known_scorers(declared)
    assert message in str(error.value)


def test_a_probe_cannot_import_code(module: Callable[..., str], tmp_path: Path) -> None:
    """The key `model` of `regard` names a model, whatever the name looks like."""
    module("raise SystemExit")
    scorer = scorers.open_model("python:tone:score", tmp_path)
    with pytest.raises(ModelError, match=r"has no folder|needs torch"):
        _ = scorer.labels
    assert "tone" not in sys.modules


# Built-in scorers


@pytest.mark.parametrize(
    ("text", "words", "sentences"),
    [
        ("The cat sat on the mat.", 6, 1),
        ("Don't stop! Why not? Non-stick pans…", 6, 3),
        ("Dr. Smith met Mrs. Jones. They talked.", 7, 2),
        ("It costs 3.50 dollars. Fine.", 6, 2),
        ("- one\n- two\n- three", 3, 3),
        ("# Title\n\nText. (More.)", 3, 3),
        ("", 0, 0),
        ("!!! ...", 0, 0),
    ],
)
def test_words_and_sentences(text: str, words: int, sentences: int) -> None:
    assert scorers.words(text) == words
    assert scorers.sentences(text) == sentences


def test_reading_ease_by_hand() -> None:
    # Six words of one syllable each: 206.835 - 1.015 * 6 - 84.6.
    assert scorers.flesch("The cat sat on the mat.") == pytest.approx(116.145)
    # Two sentences of two words; syllables: com-put-ers 3, work 1, hap-py 2, peo-ple 2.
    assert scorers.flesch("Computers work. Happy people.") == pytest.approx(206.835 - 1.015 * 2 - 84.6 * 8 / 4)
    (found,) = scores_of(scorers.open_scorer("flesch", Path())[0], ["…"])
    assert "the text has no words" in str(found)


def test_sentiment_is_that_of_vader() -> None:
    import vader

    text = "You are a wonderful engineer."
    assert scorers.sentiment(text) == vader.polarity_scores(text)["compound"] > 0
    assert scorers.sentiment("A terrible, lazy and stupid idea.") < -0.5
    assert scorers.sentiment("") == 0


def test_numbers_are_read() -> None:
    scorer, _ = scorers.open_scorer("number", Path())
    assert scores_of(scorer, ["0.5", " 3 ", "-1e3"]) == [{"score": 0.5}, {"score": 3.0}, {"score": -1000.0}]
    assert all(isinstance(found, str) for found in scores_of(scorer, ["nan", "inf", "", "five", "5 points"]))


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorers, "find_spec", lambda _: None)
    with pytest.raises(
        ModelError, match=r"the scorer flesch needs the package pyphen: pip install \"pytest-fairness\[scorers\]\""
    ):
        scorers.open_built_in("flesch")
    assert scorers.open_built_in("words").identity == "words 1"
