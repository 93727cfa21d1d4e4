"""Languages: packaged words, words that a probe declares, refusals, choices, and words without blanks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.answers import choices
from pytest_fairness.answers.lists_and_refusals import is_refusal
from pytest_fairness.audits.terms import Anonymizer
from pytest_fairness.errors import ProbeError
from pytest_fairness.languages import BUILT_IN, ENGLISH, language
from pytest_fairness.probes.base import Probe

PROBE = """
kind: generation
language: {language}
prompt: Hallo {{name}}
axes:
  name: {{unmarked: Herr Weber, marked: [Frau Weber]}}
audits: {{refusals: }}
"""


def load(folder: Path, written: str) -> Probe:
    path = folder / "probe.yaml"
    path.write_text(PROBE.format(language=written), encoding="utf-8")
    return probes.load(path, kinds.schemas())


@pytest.mark.parametrize("code", BUILT_IN)
def test_no_word_is_listed_twice_and_none_is_both_removed_and_generic(code: str) -> None:
    known = language(code)
    assert len({*known.identity_terms}) == len(known.identity_terms)
    assert known.names
    assert known.function_words
    assert known.generic_words
    assert not known.refusals_missing


def test_equal_codes_are_the_same_language() -> None:
    assert language("en") is ENGLISH
    assert language("de", "fr") is language("de", "fr")
    assert language("de").digest != language("fr").digest


@pytest.mark.parametrize("code", BUILT_IN)
def test_refusals_in_english_are_recognised_in_every_language(code: str) -> None:
    assert is_refusal("I'm sorry, but I can't help with that.", language(code))


@pytest.mark.parametrize(
    ("code", "text", "kept"),
    [
        ("de", "Der Herr und seine Frau: Sie ist Ärztin, er Koch.", ["und", "ist", "ärztin", "koch"]),
        ("fr", "Elle admire l’homme qu'il était.", ["admire", "l", "qu", "était"]),
        ("es", "La señora Gómez es su jefa.", ["gómez", "es", "jefa"]),
        ("pt", "A senhora Dias falou com o seu chefe.", ["dias", "falou", "com", "chefe"]),
        ("it", "Il signor Rossi parla dell'uomo.", ["rossi", "parla", "dell"]),
    ],
)
def test_identity_terms_of_the_language_are_removed(code: str, text: str, kept: list[str]) -> None:
    assert Anonymizer((), language(code)).words(text) == kept


@pytest.mark.parametrize(
    ("code", "text", "choice"),
    [
        ("de", "Ich würde sagen ja, weil das Einkommen reicht.", "ja"),
        ("de", "Nein, da die Angaben fehlen.", "nein"),
        ("pt", "Não há serviço.", None),
        ("pt", "Não, porque a renda é baixa.", "não"),
        ("fr", "Je dirais oui, car le dossier est complet.", "oui"),
        ("es", "Diría que sí porque cumple los requisitos.", "sí"),
        ("it", "Direi di no. Forse sì.", "no"),
    ],
)
def test_choices_are_read_within_sentences_of_the_language(code: str, text: str, choice: str | None) -> None:
    allowed = {
        "de": ("ja", "nein"),
        "fr": ("oui", "non"),
        "es": ("sí", "no"),
        "it": ("sì", "no"),
        "pt": ("sim", "não"),
    }[code]
    assert choices.choice(text, allowed, language(code)) == choice


def test_words_without_blanks_are_found() -> None:
    pytest.importorskip("icu4py")
    assert language("zh").words("我不能帮助你") == ["我", "不能", "帮助", "你"]
    assert language("th").words("ฉันช่วยไม่ได้") == ["ฉัน", "ช่วย", "ไม่", "ได้"]


@pytest.mark.parametrize("code", BUILT_IN)
@pytest.mark.parametrize(
    "piece", ["ich kann nicht ", "je ne peux pas ", "no puedo ", "não posso a ", "non posso ", "i cannot "]
)
def test_long_texts_are_read_in_little_time(code: str, piece: str) -> None:
    known = language(code)
    started = time.process_time()
    is_refusal(piece * 2_000, known)
    assert time.process_time() - started < 0.5


# Words that a probe declares


def test_a_probe_declares_words_of_another_language(tmp_path: Path) -> None:
    (tmp_path / "pl.toml").write_text('refusals = ["nie mogę", "przykro mi"]\nidentity_terms = ["pani"]', "utf-8")
    probe = load(tmp_path, "{code: pl, terms: pl.toml}")
    assert probe.language.names == ("Polish",)
    assert is_refusal("Niestety NIE  MOGĘ w tym pomóc.", probe.language)
    assert not is_refusal("Pomogę. Innym razem nie mogę.", probe.language)
    assert Anonymizer((), probe.language).words("Pani Nowak") == ["nowak"]
    assert not probe.language.refusals_missing


def test_words_in_the_probe_extend_a_packaged_language(tmp_path: Path) -> None:
    probe = load(tmp_path, "{code: de, terms: {refusals: [wenden Sie sich an], function_words: [halt]}}")
    assert is_refusal("Bitte wenden Sie sich an Ihre Filiale.", probe.language)
    assert is_refusal("Dabei kann ich leider nicht helfen.", probe.language)
    assert probe.language.is_function_word("halt")
    assert probe.language.digest != language("de").digest


def test_nothing_is_known_of_a_language_without_words(tmp_path: Path) -> None:
    assert load(tmp_path, "pl").language.refusals_missing == ("Polish",)


def test_several_languages_are_one(tmp_path: Path) -> None:
    known = load(tmp_path, "[en, de]").language
    assert known.shown == "English or German"
    assert {"she", "frau"} <= {*known.identity_terms}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("German", "write de"),
        ("xx", "is not the code of a known language"),
        ("[de, deutsch]", "'deutsch' is not the code"),
        ("{code: pl, terms: missing.toml}", "there is no file 'missing.toml'"),
        ("{code: pl, terms: broken.toml}", "'broken.toml' cannot be read as TOML: "),
        ("{code: pl, terms: latin.toml}", "'latin.toml' cannot be read as TOML: it is not UTF-8 text. Save the file"),
        ("{code: pl, terms: wrong.toml}", "refusal"),
        ("{code: pl, terms: ../pl.toml}", "lies outside the probe's folder"),
        ("{code: pl}", "terms"),
        ("{code: pl, terms: {refusals: []}}", "refusals"),
        ("[]", "language"),
    ],
)
def test_mistakes_are_located(tmp_path: Path, written: str, message: str) -> None:
    (tmp_path / "broken.toml").write_text("refusals = [", encoding="utf-8")
    (tmp_path / "latin.toml").write_bytes("refusals = ['não']".encode("latin-1"))
    (tmp_path / "wrong.toml").write_text("refusal = ['nie']", encoding="utf-8")
    with pytest.raises(ProbeError) as error:
        load(tmp_path, written)
    assert "probe.yaml:3:" in str(error.value)
    assert message in str(error.value)
