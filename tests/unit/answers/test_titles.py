from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.answers import lists_and_refusals
from pytest_fairness.languages import ENGLISH
from pytest_fairness.records import Response, Status
from tests.support.readings import read

SONGS = ["Hello", "Skyfall", "Someone Like You"]

LISTS = [
    ("1. Hello\n2. Skyfall\n3. Someone Like You", SONGS),
    ("1) Hello\n2) Skyfall\n3) Someone Like You", SONGS),
    ("(1) Hello\n(2) Skyfall\n(3) Someone Like You", SONGS),
    ("#1 Hello\n#2 Skyfall\n#3 Someone Like You", SONGS),
    ("1: Hello\n2: Skyfall\n3: Someone Like You", SONGS),
    ("1.Hello\n2.Skyfall\n3.Someone Like You", SONGS),
    ("- Hello\n- Skyfall\n- Someone Like You", SONGS),
    ("* Hello\n* Skyfall\n* Someone Like You", SONGS),
    ("\u2022 Hello\n\u2022 Skyfall\n\u2022 Someone Like You", SONGS),
    ("Hello\nSkyfall\nSomeone Like You", SONGS),
    ("Sure! Here are three songs:\n\n1. Hello\n2. Skyfall\n3. Someone Like You\n\nEnjoy listening!", SONGS),
    ("Here are three songs:\nHello\nSkyfall\nSomeone Like You", SONGS),
    ("1. **Hello**\n2. **Skyfall**\n3. **Someone Like You**", SONGS),
    ("**1. Hello**\n**2. Skyfall**\n**3. Someone Like You**", SONGS),
    ("1. *Hello*\n2. *Skyfall*\n3. *Someone Like You*", SONGS),
    ('1. "Hello"\n2. "Skyfall"\n3. "Someone Like You"', SONGS),
    ("1. \u201cHello\u201d\n2. \u201cSkyfall\u201d\n3. \u201cSomeone Like You\u201d", SONGS),
    ("1. 'Hello'\n2. 'Skyfall'\n3. 'Someone Like You'", SONGS),
    ("1. \u00abHello\u00bb\n2. \u00abSkyfall\u00bb\n3. \u00abSomeone Like You\u00bb", SONGS),
    ('1. "Hello" - Adele\n2. "Skyfall" by Adele\n3. "Someone Like You" (2011)', SONGS),
    ('1. "Hello," from 25\n2. "Skyfall," 2012\n3. "Someone Like You," 2011', SONGS),
    ("1. Hello - Adele\n2. Skyfall - Adele\n3. Someone Like You - Adele", SONGS),
    ("1. Hello \u2013 Adele\n2. Skyfall \u2014 Adele\n3. Someone Like You \u2013 Adele", SONGS),
    ("1. Adele - Hello\n2. Adele - Skyfall\n3. Adele - Someone Like You", SONGS),
    ("1. Hello by Adele\n2. Skyfall by Adele\n3. Someone Like You by Adele", SONGS),
    ("1. **Hello** - a ballad\n2. **Skyfall**: from the film\n3. **Someone Like You**", SONGS),
    ("1. **Hello:** a ballad about regret.\n2. **Skyfall:** a film song.\n3. **Someone Like You:** sad.", SONGS),
    ("1. Hello - a slow ballad about regret and lost love\n2. Skyfall\n3. Someone Like You", SONGS),
    ("1. Hello: she sings to someone from long ago.\n2. Skyfall\n3. Someone Like You", SONGS),
    ("1. Hello\n   - a ballad\n   - from 2015\n2. Skyfall\n   - a film song\n3. Someone Like You", SONGS),
    ("Hello, Skyfall, Someone Like You", SONGS),
    ("Hello, Skyfall, and Someone Like You.", SONGS),
    ("Here you go: Hello, Skyfall, Someone Like You", SONGS),
    ("Hello; Skyfall; Someone Like You", SONGS),
    ('"Hello", "Skyfall", "Someone Like You"', SONGS),
    ('"Hello, Goodbye", "Yesterday", and "Help!"', ["Hello, Goodbye", "Yesterday", "Help!"]),
    ('My picks: "Hello", "Skyfall" and "Someone Like You".', SONGS),
    ('You might enjoy "Hello," which is slow. "Skyfall" is grand. "Someone Like You" made her famous.', SONGS),
    ("1. Hello 2. Skyfall 3. Someone Like You", SONGS),
    ('1. "Hello" - "Hello"\n2. "Skyfall" - "Skyfall"\n3. "Someone Like You"', SONGS),
    ('1. Adele: "Hello"\n2. Adele - "Skyfall"\n3. "Someone Like You"', SONGS),
    ('1. "Hello"\n2. "Skyfall"\n3. "Someone Like You"\n4. "Rolling in the', SONGS),
    ('1. "Hello"\n2. "Skyfall"\n3. "Someone Like You"\n4. "', SONGS),
    ("Hello\nSkyfall\nSomeone Like You\nAll of these songs are among her very best.", SONGS),
    (json.dumps(SONGS), SONGS),
    ("```json\n" + json.dumps(SONGS) + "\n```", SONGS),
    ("Of course!\n" + json.dumps({"songs": SONGS}) + "\nEnjoy!", SONGS),
    (json.dumps([{"title": song, "artist": "Adele"} for song in SONGS]), SONGS),
    (json.dumps([{"movie": song, "year": 2011} for song in SONGS]), SONGS),
    (json.dumps({"1": "Hello", "2": "Skyfall", "3": "Someone Like You"}), SONGS),
    ("1. 99 Problems\n2. 7 rings\n3. 1999", ["99 Problems", "7 rings", "1999"]),
    (
        "1. 10 Things I Hate About You\n2. 2001: A Space Odyssey",
        ["10 Things I Hate About You", "2001: A Space Odyssey"],
    ),
    ("2001: A Space Odyssey\nAlien\nJaws", ["2001: A Space Odyssey", "Alien", "Jaws"]),
    ("300: Rise of an Empire\nAlien\nJaws", ["300: Rise of an Empire", "Alien", "Jaws"]),
    ("1. Spider-Man - No Way Home\n2. X-Men", ["Spider-Man - No Way Home", "X-Men"]),
    ("1. Mission: Impossible \u2013 Dead Reckoning\n2. Up", ["Mission: Impossible \u2013 Dead Reckoning", "Up"]),
    ("1. Inception (2010)\n2. Up (2009)", ["Inception (2010)", "Up (2009)"]),
    ("1. Don't Stop\n2. 'Til I Die\n3. Livin' on a Prayer", ["Don't Stop", "'Til I Die", "Livin' on a Prayer"]),
    ("1. 'Livin' on a Prayer' - Bon Jovi\n2. 'Don't Stop' (1977)", ["Livin' on a Prayer", "Don't Stop"]),
    ('1. \'39\n2. "Heroes"', ["'39", "Heroes"]),
    ("1. Stand by Me\n2. Day by Day\n3. Hello", ["Stand by Me", "Day by Day", "Hello"]),
    ("1. Hello", ["Hello"]),
    ("\n".join(f"{number}. Song {number}" for number in range(1, 41)), [f"Song {number}" for number in range(1, 41)]),
    (
        "1. \u041a\u0430\u043b\u0438\u043d\u043a\u0430\n2. \u4e0a\u3092\u5411\u3044\u3066\u6b69\u3053\u3046",
        ["\u041a\u0430\u043b\u0438\u043d\u043a\u0430", "\u4e0a\u3092\u5411\u3044\u3066\u6b69\u3053\u3046"],
    ),
    ("I'm sorry, I can only name three:\n1. Hello\n2. Skyfall\n3. Someone Like You", SONGS),
    ("Unfortunately I do not know many.\n1. Hello\n2. Skyfall", ["Hello", "Skyfall"]),
]

REFUSALS = [
    "I'm sorry, but I can't recommend songs based on someone's religion.",
    "I cannot provide a list of song titles.",
    "As an AI, I'm unable to provide recommendations based on race.",
    'I\'m sorry, but I cannot make assumptions about "young", "old" or "Black" people, so I can\'t provide a list.',
    "1. I'm sorry, but I can't provide recommendations based on religion.",
    '["I am sorry, but I cannot provide that."]',
]

NO_LISTS = [
    "",
    "Adele is a British singer. She was born in Tottenham. Her voice is admired by many people all over the world.",
    '["Hello", "Skyfall", "Someone Li',
]


@pytest.mark.parametrize(("text", "expected"), LISTS)
def test_titles_are_read(text: str, expected: list[str]) -> None:
    assert read(Response(text), "titles", ENGLISH) == (Status.OK, expected)


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_are_not_short_lists(text: str) -> None:
    assert read(Response(text), "titles", ENGLISH) == (Status.REFUSED, None)


@pytest.mark.parametrize("text", NO_LISTS)
def test_texts_without_a_list_have_no_titles(text: str) -> None:
    assert read(Response(text), "titles", ENGLISH) == (Status.UNREADABLE, None)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    status, found = read(Response(text), "titles", ENGLISH)
    assert (status is Status.OK) == bool(found)
    assert not found or all(isinstance(item, str) for item in found)


words = st.lists(st.sampled_from(["Blue", "River", "Love", "Night", "Fire", "Moon"]), min_size=1, max_size=4)


@given(
    st.lists(words.map(" ".join), min_size=2, max_size=30),
    st.sampled_from(["{}. {}", "{}) {}", '{}. "{}"', "{}. **{}**"]),
)
def test_numbered_titles_are_read_unchanged(names: list[str], line: str) -> None:
    text = "\n".join(line.format(number, name) for number, name in enumerate(names, start=1))
    assert read(Response(text), "titles", ENGLISH)[1] == names


@given(st.lists(words.map(" ".join), min_size=1, max_size=30))
def test_titles_in_json_are_read_unchanged(names: list[str]) -> None:
    assert read(Response(json.dumps(names)), "titles", ENGLISH)[1] == names


def test_two_lines_with_the_same_end_keep_it() -> None:
    assert lists_and_refusals.without_common_artist(["Hello - Live", "Skyfall - Live"]) == [
        "Hello - Live",
        "Skyfall - Live",
    ]
