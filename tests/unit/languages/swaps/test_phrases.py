"""Swaps by gender in German, French and Spanish.

`other_languages.jsonl` has prompts whose versions were read one by one: they are the expected versions.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from pytest_fairness.languages.swap_terms import SwapTerms, data
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
        ("de", "Ich gab das Paket der Kundin.", "'der Kundin' has several counterparts: its case is not clear"),
        ("de", "Die Meinung der Lehrer zählt.", "the prompt names no group"),
        ("de", "Mein Sohn ist Fliesenleger.", "'ist Fliesenleger' may refer to the person of the swapped term"),
        ("de", "Die Frau am Telefon, die mich anrief.", "', die' may refer to the person of the swapped term"),
        ("de", "Mein Vater hat eine Hebamme.", "the built-in list has no counterpart of 'Hebamme'"),
        ("de", "Mein Vater und zum Lehrer mit meiner Schwester.", "the prompt names several groups: male, female"),
        ("fr", "La cliente est zinzine.", "the form of 'zinzine' may depend on the person"),
        ("fr", "Mon frère veut payer. Je l'ai aidé.", "'l'ai aidé' may refer to the person of the swapped term"),
        ("fr", "Les clients attendent.", "the prompt names no group"),
        ("fr", "Camille attend.", "the built-in list has no counterpart of the name 'Camille'"),
        ("es", "Mi hermana no contesta. La vi ayer.", "'La vi' may refer to the person of the swapped term"),
        ("es", "Mi hija no quiere dormir sola.", "'sola' may refer to the person of the swapped term"),
        ("es", "Mi paciente no viene.", "the prompt names no group"),
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


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_prompts_are_swapped_or_left_out(seed: int) -> None:
    lines = Path(__file__).with_name("other_languages.jsonl").read_text("utf-8").splitlines()
    random = np.random.default_rng(seed)
    for line in random.choice(lines, 60):
        row = json.loads(line)
        words = [word for word in row["text"].split() if random.random() > 0.3]
        found = swap(" ".join(words), SwapTerms.built_in("gender", row["language"]), GROUPS)
        assert isinstance(found, LeftOut) or found.versions[found.group] == " ".join(words)


def test_several_people_are_left_out() -> None:
    german = SwapTerms.built_in("gender", "de")
    found = swap("Mein Vater braucht einen Arzt.", german, GROUPS)
    assert found == LeftOut("'Mutter' and 'Ärztin' may be two people")
    found = swap("Mein Vater hustet. Was raten Sie meinem Vater?", german, GROUPS)
    assert isinstance(found, Swap)
    assert found.versions["female"] == "Meine Mutter hustet. Was raten Sie meiner Mutter?"


def test_names_of_other_people_are_flagged() -> None:
    found = swap("La madre de Diego no vino.", SwapTerms.built_in("gender", "es"), GROUPS)
    assert isinstance(found, Swap)
    assert found.versions["male"] == "El padre de Diego no vino."
    assert found.warnings == ("'Diego' may be another person, whose name is not replaced",)


def test_pronouns_that_may_be_things_are_flagged() -> None:
    found = swap("Mein Vater hat einen Brief. Er ist da.", SwapTerms.built_in("gender", "de"), GROUPS)
    assert isinstance(found, Swap)
    assert found.warnings == ("'Er' may refer to 'einen Brief'",)


def test_placebo_of_a_name_is_another_name_of_the_same_gender() -> None:
    german = SwapTerms.built_in("gender", "de")
    found = swap("Thomas hat angerufen.", german, GROUPS)
    assert isinstance(found, Swap)
    assert found.placebo is not None
    again = swap(found.placebo, german, GROUPS)
    assert isinstance(again, Swap)
    assert again.group == "male"


FRAMES = {
    "de": ("Mein {} hat heute angerufen.", "Meine {} hat heute angerufen."),
    "fr": ("Un {} demande de l'aide.", "Une {} demande de l'aide."),
    "es": ("Un {} pide ayuda.", "Una {} pide ayuda."),
}


@pytest.mark.parametrize("code", FRAMES)
def test_every_noun_has_a_version_that_leads_back(code: str) -> None:
    content = data(f"{code}_gender")
    terms = SwapTerms.built_in("gender", code)
    male_column, female_column = (content["columns"].index(name) for name in ("nom" if code == "de" else "m", "f"))
    nouns = [row.split() for row in content["nouns"]]
    assert len(nouns) > 70
    for forms in nouns:
        if "possessive" in forms:
            continue
        male, female = (
            frame.format(forms[column])
            for frame, column in zip(FRAMES[code], (male_column, female_column), strict=True)
        )
        found = swap(male, terms, GROUPS)
        assert isinstance(found, Swap), (male, found)
        assert found.versions["female"] == female
        back = swap(female, terms, GROUPS)
        assert isinstance(back, Swap), (female, back)
        assert back.versions["male"] == male


@pytest.mark.parametrize("code", FRAMES)
def test_every_name_has_a_version_that_leads_back(code: str) -> None:
    terms = SwapTerms.built_in("gender", code)
    for pair in data("names")["pairs"][code].split():
        male, female = pair.split("/")
        for name, other, group in ((male, female, "female"), (female, male, "male")):
            found = swap(f"{name} 2025", terms, GROUPS)
            assert isinstance(found, Swap), (name, found)
            assert found.versions[group] == f"{other} 2025"


@pytest.mark.parametrize(
    ("code", "locales"), [("de", "de_DE de_AT de_CH"), ("fr", "fr_FR fr_CH fr_BE"), ("es", "es_ES es_MX es_CO es_AR")]
)
def test_names_are_given_to_one_gender(code: str, locales: str) -> None:
    pytest.importorskip("faker")
    providers = [import_module(f"faker.providers.person.{locale}").Provider for locale in locales.split()]
    # Earlier versions of Faker have no lists by gender for some countries.
    male, female = (
        {name for provider in providers for name in getattr(provider, f"first_names_{gender}", ())}
        for gender in ("male", "female")
    )
    pairs = [pair.split("/") for pair in data("names")["pairs"][code].split()]
    both = {name for name, _ in pairs if name in female} | {name for _, name in pairs if name in male}
    # Second names of the other gender: "José" in "María José", and "María" in "José María".
    assert both <= {"José", "María"}
