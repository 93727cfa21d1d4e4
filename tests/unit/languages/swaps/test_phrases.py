"""Swaps by gender in German, French and Spanish.

`other_languages.jsonl` has 20 prompts a language, whose versions were read one by one: they are the expected versions.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_fairness.languages import swap_terms
from pytest_fairness.languages.swap_terms import SwapTerms
from pytest_fairness.languages.swapping import LeftOut, Swap, swap

GROUPS = ("male", "female")


@pytest.mark.parametrize(
    ("code", "text", "version"),
    [
        ("de", "Der Kunde möchte wissen, warum das dauert.", "Die Kundin möchte wissen, warum das dauert."),
        ("de", "Meine Mutter ist 78 und hat Fieber.", "Mein Vater ist 78 und hat Fieber."),
        ("de", "Soll ich einen Arzt rufen?", "Soll ich eine Ärztin rufen?"),
        ("de", "Antworte für die Kundin. Wir helfen Ihnen.", "Antworte für den Kunden. Wir helfen Ihnen."),
        ("de", "Sehr geehrte Frau Schmidt, danke für Ihre Mail.", "Sehr geehrter Herr Schmidt, danke für Ihre Mail."),
        ("de", "Schreiben Sie Herrn Müller.", "Schreiben Sie Frau Müller."),
        ("de", "Ich wohne mit meiner Schwester zusammen.", "Ich wohne mit meinem Bruder zusammen."),
        ("fr", "Ma mère a 78 ans.", "Mon père a 78 ans."),
        ("fr", "Mme Martin n'a pas reçu son colis.", "M. Martin n'a pas reçu son colis."),
        ("fr", "Écris à l’employée qui part.", "Écris à l’employé qui part."),
        ("fr", "MON FRÈRE veut un prêt.", "MA SŒUR veut un prêt."),
        ("fr", "Au client, puis au client.", "À la cliente, puis à la cliente."),
        ("es", "Mi hermana necesita un préstamo.", "Mi hermano necesita un préstamo."),
        ("es", "El señor García no recibió la factura.", "La señora García no recibió la factura."),
        ("es", "Escribe al profesor sobre la devolución.", "Escribe a la profesora sobre la devolución."),
    ],
)
def test_versions(code: str, text: str, version: str) -> None:
    found = swap(text, SwapTerms.built_in("gender", code), GROUPS)
    assert isinstance(found, Swap), found
    (other,) = set(GROUPS) - {found.group}
    assert found.versions == {found.group: text, other: version}


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        ("de", "Was kostet ein Kredit?", "the prompt names no group"),
        ("de", "Die Kundin wartet.", "'Die Kundin' has several counterparts"),
        ("de", "Die Meinung der Lehrer zählt.", "'der Lehrer' has several counterparts"),
        ("de", "Den Kunden gefällt das.", "'Den Kunden' has several counterparts"),
        (
            "de",
            "Wir suchen einen neuen Mitarbeiter.",
            "'Mitarbeiter' is replaced only in the phrases of the built-in list, such as an article and a noun",
        ),
        ("de", "Mein Mann schnarcht, sagt er.", "'er' may refer to the person of the swapped term"),
        ("de", "Mein Sohn ist Rentner.", "'ist Rentner' may refer to the person of the swapped term"),
        ("de", "Antworte für die Kundin, deren Paket fehlt.", "'deren' may refer to the person of the swapped term"),
        ("de", "Mein Vater hat eine Hebamme.", "the built-in list has no counterpart of 'Hebamme'"),
        ("de", "Mein Vater und zum Lehrer mit meiner Schwester.", "the prompt names several groups: male, female"),
        ("fr", "La cliente est contente.", "the form of 'est' after 'La cliente' may depend on this phrase"),
        ("fr", "Une cliente contente demande.", "the form of 'contente' after 'Une cliente' may depend on this phrase"),
        ("fr", "Mon frère veut payer. Je l'ai aidé.", "'Je l'ai' may refer to the person of the swapped term"),
        ("fr", "Ma fille tousse. Elle a 4 ans.", "'Elle' may refer to the person of the swapped term"),
        ("fr", "La femme attend.", "'La femme' has several counterparts"),
        (
            "fr",
            "Les clients attendent.",
            "'clients' is replaced only in the phrases of the built-in list, such as an article and a noun",
        ),
        ("es", "Mi hermana no contesta. La llamé ayer.", "'La llamé' may refer to the person of the swapped term"),
        ("es", "Mi abuelo vive solo.", "'solo' may refer to the person of the swapped term"),
        ("es", "Mi abuela llegó cansada.", "the form of 'llegó' after 'Mi abuela' may depend on this phrase"),
        (
            "es",
            "Mi paciente no viene.",
            "'paciente' is replaced only in the phrases of the built-in list, such as an article and a noun",
        ),
    ],
)
def test_prompts_that_are_left_out(code: str, text: str, reason: str) -> None:
    assert swap(text, SwapTerms.built_in("gender", code), GROUPS) == LeftOut(reason)


def test_versions_that_were_read() -> None:
    for line in Path(__file__).with_name("other_languages.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        found = swap(row["text"], SwapTerms.built_in("gender", row["language"]), GROUPS)
        if isinstance(found, LeftOut):
            assert found.reason == row.get("left_out")
        else:
            assert found.group == row["group"]
            assert found.versions == {group: row.get(group, row["text"]) for group in GROUPS}
            assert list(found.warnings) == row["warnings"]


def test_several_people_are_left_out() -> None:
    german = SwapTerms.built_in("gender", "de")
    found = swap("Mein Vater braucht einen Arzt.", german, GROUPS)
    assert found == LeftOut("'Mein Vater' and 'einen Arzt' may be two people")
    found = swap("Mein Vater hustet. Was raten Sie meinem Vater?", german, GROUPS)
    assert isinstance(found, Swap)
    assert found.versions["female"] == "Meine Mutter hustet. Was raten Sie meiner Mutter?"


def test_other_capitals_may_be_names() -> None:
    found = swap("Mi hermana vive en Madrid.", SwapTerms.built_in("gender", "es"), GROUPS)
    assert isinstance(found, Swap)
    assert found.warnings == ("'Madrid' may be a name, which is not replaced",)


@pytest.mark.parametrize("code", swap_terms.CODES)
def test_every_phrase_has_one_counterpart(code: str) -> None:
    terms = SwapTerms.built_in("gender", code)
    listed = swap_terms.pairs(code)
    assert len(listed) > 200
    for phrase, (column, pair) in listed.items():
        found = swap(phrase, terms, GROUPS)
        if isinstance(found, Swap):
            assert found.group == GROUPS[column]
            assert found.versions[GROUPS[1 - column]].lower() == pair[1 - column].lower()
            back = swap(found.versions[GROUPS[1 - column]], terms, GROUPS)
            assert isinstance(back, LeftOut) or back.versions[found.group] == phrase
