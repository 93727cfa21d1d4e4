"""Swaps by gender in English.

`prompts.jsonl` has 300 prompts of five domains, which were written before the rules; `held_out.jsonl` has 373 prompts,
which were written after the rules. All versions in both files were read one by one: they are the expected versions.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.languages import english_words
from pytest_fairness.languages.english_words import gender, names, terms
from pytest_fairness.languages.swap_terms import SwapTerms
from pytest_fairness.languages.swapping import LeftOut, Swap, swap

GENDER = SwapTerms.built_in("gender", "en")
BINARY = ("male", "female")
FOLDER = Path(__file__).parent
ONE_WAY = {form for group in gender()["one_way"].values() for form in group}


def prompts(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


def swapped(text: str, *groups: str) -> Swap:
    found = swap(text, GENDER, groups or BINARY)
    assert isinstance(found, Swap), found
    return found


def reason(text: str, *groups: str) -> str:
    found = swap(text, GENDER, groups or BINARY)
    assert isinstance(found, LeftOut), found
    return found.reason


@functools.cache
def swap_of_prompt(text: str) -> Swap | LeftOut:
    """Return the versions of a prompt of the files, which two tests read."""
    return swap(text, GENDER, BINARY)


@pytest.mark.parametrize("name", ["prompts", "held_out"])
def test_versions_that_were_read(name: str) -> None:
    different = []
    for row in prompts(name):
        found = swap_of_prompt(row["text"])
        if isinstance(found, LeftOut):
            different += [row] if row.get("left_out") != found.reason else []
            continue
        expected = {group: row.get(group, row["text"]) for group in BINARY}
        if (found.group, found.versions, found.placebo) != (row["group"], expected, row["placebo"]):
            different.append(row)
        neutral = swap(row["text"], GENDER, ("neutral",))
        if isinstance(neutral, LeftOut):
            different += [row] if row.get("neutral_left_out") != neutral.reason else []
        elif (neutral.versions["neutral"], list(neutral.warnings)) != (row["neutral"], row["warnings"]):
            different.append(row)
    assert not different


def test_prompts_of_five_domains() -> None:
    rows = prompts("prompts")
    assert Counter(row["domain"] for row in rows) == dict.fromkeys(
        ["hiring", "health", "lending", "support", "education"], 60
    )
    assert len({row["text"] for row in rows}) == 300


@pytest.mark.parametrize("name", ["prompts", "held_out"])
def test_round_trips(name: str) -> None:
    for row in prompts(name):
        found = swap_of_prompt(row["text"])
        if isinstance(found, Swap):
            (other,) = set(BINARY) - {found.group}
            back = swap(found.versions[other], GENDER, BINARY)
            one_way = any(term.lower() in ONE_WAY for term, _ in found.replaced)
            assert isinstance(back, LeftOut) or one_way or back.versions[found.group] == row["text"]


@pytest.mark.parametrize(
    ("text", "male"),
    [
        (
            "Tell her that her card, not hers, is lost; she did it herself.",
            "Tell him that his card, not his, is lost; he did it himself.",
        ),
        ("Call her back. Her back hurts.", "Call him back. His back hurts."),
        ("I met her two years ago.", "I met him two years ago."),
        ("We refunded her $5.", "We refunded him $5."),
        ("Let her know. Make her feel welcome.", "Let him know. Make him feel welcome."),
        ("Ask her manager.", "Ask his manager."),
        ("I wrote to her three times.", "I wrote to him three times."),
        ("Tell her pls.", "Tell him pls."),
        ("Her in-laws paid her rent.", "His in-laws paid his rent."),
        ("Sam (she/her) calls.", "Sam (he/him) calls."),
        ('{"her_name": "Emily", "sex": "female"}', '{"her_name": "Andrew", "sex": "male"}'),
        ("_She_ is late.", "_He_ is late."),
        ("MY WIFE LOST HER JOB", "MY HUSBAND LOST HIS JOB"),
        ("Mary’s boss", "James’s boss"),
        ("San Francisco? She lives in San Diego.", "San Francisco? He lives in San Diego."),
        ("I met an actress.", "I met an actor."),
        ("my ex-wife and a team", "my ex-husband and a team"),
        ("a female-led team", "a male-led team"),
        ("She lost her house key.", "He lost his house key."),
    ],
)
def test_versions(text: str, male: str) -> None:
    assert swapped(text).versions["male"] == male


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("Is he well? How old is he?", "Are they well? How old are they?"),
        ("The problem is he doesn't answer.", "The problem is they don't answer."),
        ("He no longer works here.", "They no longer work here."),
        (
            "A customer has been waiting for three weeks now, and he\nwants his money. Call him\nhe works nights.",
            "A customer has been waiting for three weeks now, and they\nwant their money. Call them\nthey work nights.",
        ),
        ("She (34) is late.", "They (34) are late."),
        ("He neither calls nor writes.", "They neither call nor write."),
        ("He, however, is late.", "They, however, are late."),
        ("He's been here and he's late.", "They've been here and they're late."),
        ("He’s late, isn’t he?", "They’re late, aren’t they?"),
        ("He has asthma, allergies and eczema.", "They have asthma, allergies and eczema."),
        ("He repairs things and babysits.", "They repair things and babysit."),
        ("He tries, watches and carries it.", "They try, watch and carry it."),
        ("He hates it and wants his money.", "They hate it and want their money."),
        ("He and his manager are late.", "They and their manager are late."),
        ("He reported a surplus, mainly thanks to us.", "They reported a surplus, mainly thanks to us."),
        ("An uncle? No, an actor.", None),
        ("He is himself; it is his.", "They are themself; it is theirs."),
    ],
)
def test_gender_neutral_versions(text: str, neutral: str | None) -> None:
    if neutral is None:
        assert reason(text, "neutral") == "'uncle' has no gender-neutral counterpart"
    else:
        caller = "A customer called. "  # shows that "they" is one person
        assert swapped(caller + text, "neutral").versions == {"neutral": caller + neutral}


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("She said the card is blocked and needs a code.", "the subject of 'needs' is unclear"),
        ("Does he or doesn't he pay?", "the verb of 'he' is unclear"),
        ("He, who never pays, wants it.", "the verb of 'He' is unclear"),
        ("The patient, he says, is fine.", "the subject of 'is' is unclear"),
        ("<b>He</b> is late.", "the verb of 'He' is unclear"),
        ("**He** is late.", "the verb of 'He' is unclear"),
        ("He by and large pays.", "the verb of 'He' is unclear"),
        ("He's paid.", "'He's paid' may contain 'is' or 'has'"),
        ("Is it enough that he's covered this year?", "'he's covered' may contain 'is' or 'has'"),
        ("What's he need?", "the verb of 'he' is unclear"),
        ("Grandpa needs his pills.", "'Grandpa' is used as a name"),
        ("He reads lips, signs and speaks a little.", "'signs' may be a verb or a noun"),
        ("He forgets meetings and snaps at us.", "'snaps' may be a verb or a noun"),
        ("He likes running and presses.", "'presses' may be a verb or a noun"),
        ("He likes sports, especially cars.", "'cars' may be a verb or a noun"),
    ],
)
def test_what_cannot_be_told_has_no_gender_neutral_version(text: str, neutral: str) -> None:
    assert reason(text, "neutral") == neutral
    swapped(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The card is lost.", "the prompt names no group"),
        ("They lost their card.", "the prompt names no group"),
        ("He called her.", "the prompt names several groups: male, female"),
        ("Dear Sir or Madam, my card is lost.", "the prompt names no group"),
        ("Give her credit.", "ambiguous 'her' in 'her credit'"),
        ("I promoted her last spring.", "ambiguous 'her' in 'her last'"),
        ("I met her last year.", "ambiguous 'her' in 'her last'"),
        ("Take her home.", "ambiguous 'her' in 'her home'"),
        ("She takes her A levels.", "ambiguous 'her' in 'her A'"),
        ("ms rodriguez says she is ill", "'ms rodriguez' may be a title or a name of a product"),
        ("ms. rodriguez says she is ill", "'ms rodriguez' may be a title or a name of a product"),
        ("She is pregnant.", "'pregnant' is bound to one sex"),
        ("My wife is expecting a baby.", "'is expecting a baby' is bound to one sex"),
        ("My boyfriend (31M) is ill.", "'31M' is a mark of gender that the list does not replace"),
        ("The gunman fled. Was he caught?", "the built-in list has no counterpart of 'gunman'"),
        ("Michelle Obama wrote her book.", "the prompt names a famous person or a product: 'Michelle Obama'"),
        ("I asked Grace about her card.", "the list of names has no counterpart of 'Grace'"),
        ("Mark is ill. What does he need?", "the list of names has no counterpart of 'Mark'"),
        ("Hope's card was lost. She needs another.", "the list of names has no counterpart of 'Hope'"),
        ("My wife Mairéad lost her card.", "'Mairéad' may be a name that the built-in list lacks"),
        ("A woman named Xiomara called.", "'Xiomara' may be a name that the built-in list lacks"),
        (
            "Her mail is emily.carter@example.org.",
            "'emily.carter@example.org' names a group, but links and addresses are not replaced",
        ),
        ("Write a report for Mateo. She reads well.", "the list of names has no counterpart of 'Mateo'"),
        ("Ms. Petrova called.", "the surname 'Petrova' may have a gender"),
        ("Ask Dmitri Petrov about his card.", "the surname 'Petrov' may have a gender"),
        ("Her ANA test is positive.", "'ANA' may be an abbreviation"),
        ("She eats at Wendy's.", "the prompt names a famous person or a product: 'Wendy's'"),
        ("Mary Ann lost her card.", "'Mary Ann' may be one name"),
        ("Elizabeth Hospital called her.", "'Elizabeth Hospital' may be a place or an organisation"),
        ("Ms. Emily, can she help?", "'Emily' after a title may be a first name or a surname"),
        ("My bride-to-be lost her ring.", "the built-in list has no counterpart of 'bride-to-be'"),
        ("The bride lost her ring.", "the built-in list has no counterpart of 'bride'"),
        ("On Mother's Day she called.", "'Mother's Day' is a fixed phrase"),
        ("HE policy: he pays.", "'HE' may be an abbreviation"),
        ("my husbands card", "'husbands' may be a possessive without apostrophe"),
        ("James' card is lost.", "unclear possessive of 'James'"),
        ("he says hell pay", "'hell' may be misspelt"),
        ("James and Mary", "the prompt names several groups: male, female"),
        ("I asked Sister Agnes.", "'Sister Agnes' may be a name or a title"),
        ("My flatmate Xandro called. He is late.", "'Xandro' may be a name that the built-in list lacks"),
        ("my friend amira lost her card", "the list of names has no counterpart of 'amira'"),
        ("One of the guys lost his card.", "'guys' may mean people of any gender"),
        ("she eats gf bread", "'gf' may be an abbreviation"),
        ("His Brother is broken.", "'Brother' may be a name or a title"),
        ("I saw Gone Girl. Is she ill?", "'Gone Girl' may be a name or a title"),
        ("Why did Brutus kill him?", "'Brutus' may be a name that the built-in list lacks"),
        ("Xandro's card is lost. He needs another.", "'Xandro' may be a name that the built-in list lacks"),
        ("Who is the CEO of Tesla and is he rich?", "'Who is the CEO of' asks about a known person"),
        ("did shakespeare write his plays", "the prompt names a famous person or a product: 'shakespeare'"),
        ("What did Christine Laval say about interest?", "'Christine Laval' may be a known person"),
        ("Write an essay about Mary Laval.", "'Mary Laval' may be a known person"),
        ("The nuns like her.", "the built-in list has no counterpart of 'nuns'"),
        ("A bachelor lost his keys.", "'bachelor' is a fixed phrase"),
        ("Xandro called. He is late.", "'Xandro' may be a name that the built-in list lacks"),
        ("Patient: Xandro, 41. He coughs.", "'Xandro' may be a name that the built-in list lacks"),
        ("I wrote to Mr. Xandro Clarke.", "'Xandro' may be a name that the built-in list lacks"),
        ("Is she sad in The Bell Jar?", "'Bell' may be a name that the built-in list lacks"),
        ("Is there a clinic in Lawrence, Kansas?", "'Lawrence' may be a place"),
        ("write about marie curie", "the prompt names a famous person or a product: 'marie curie'"),
    ],
)
def test_prompts_that_are_left_out(text: str, expected: str) -> None:
    assert reason(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "My wife moved from Ghana to Berlin in May. Tracking says that she speaks English.",
        "My wife works at Riverside Family Clinic, near Market Street, in Trastevere.",
        "My wife, Ms. Xandro, flies to San Francisco, and from Berlin to Trastevere.",
        "My wife has the Senior Advantage plan.",
        "MY WIFE WROTE TO XANDRO.",
        "My wife needs an A1c test from the HMO.",
    ],
)
def test_words_with_capitals_that_are_no_first_names(text: str) -> None:
    swapped(text)


def test_gender_neutral_terms_are_swapped_without_pronouns() -> None:
    assert swapped("Mx. Lee, my spouse, called. My spouse is ill.").versions == {
        "male": "Mr. Lee, my husband, called. My husband is ill.",
        "female": "Ms. Lee, my wife, called. My wife is ill.",
    }
    assert reason("My spouse said they called.") == "'they' may be plural"


def test_placebos() -> None:
    assert swapped("Emily and her card").placebo == "Carol and her card"
    assert swapped("He doesn't pay.").placebo == "He does not pay."
    assert swapped("Why doesn't he pay?").placebo == "Why doesn’t he pay?"
    assert swapped("He pays.").placebo == "He pays. Thank you."
    assert swapped("Emily asks. emily's card").placebo == "Carol asks. carol's card"


def test_a_question_after_a_comma_keeps_its_verb() -> None:
    text = "A patient came. He snores and he stops breathing, is that bad for him?"
    neutral = "A patient came. They snore and they stop breathing, is that bad for them?"
    assert swapped(text, "neutral").versions["neutral"] == neutral


def test_a_first_name_between_title_and_surname_is_swapped() -> None:
    assert swapped("Mr. Robert Hughes lost his card.").versions["female"] == "Ms. Barbara Hughes lost her card."
    assert swapped("Mr. James lost his card.").versions["female"] == "Ms. James lost her card."


def test_quoted_and_reported_persons_are_flagged() -> None:
    assert swapped('Reply to this review: "My waiter was rude."').warnings == (
        "terms in a quotation are replaced, too",
    )
    assert swapped("My boss was rude. He said that he forgot.").warnings == (
        "the prompt reports what a third person says",
    )
    assert swapped("My wife says that I snore.").warnings == ()
    assert swapped("She tells me a story. Is it hers?").warnings == ()


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("My wife and her sister are here.", "'wife' and 'sister'"),
        ("Our waiter was lovely. My husband lost a coat.", "'waiter' and 'husband'"),
        ("Peter, who is 50, or Samuel?", "'Peter' and 'Samuel'"),
        ("James, Robert and Peter are late.", "'James' and 'Robert'"),
        ("My son James and his friend Brian are late.", "'James' and 'Brian'"),
        ("Grandmother paid a stranger who claimed to be a policewoman.", "'Grandmother' and 'policewoman'"),
        ("Mr. Lee knows Mr. Park.", "'Mr' and 'Mr'"),
        ("My boyfriend left. My new boyfriend is kind.", "'boyfriend' and 'boyfriend'"),
        ("My daughter was hit by another girl in class.", "'daughter' and 'girl'"),
        ("He is ill, and so was his father.", "'He' and 'father'"),
        ("She called. Our daughter is scared.", "'She' and 'daughter'"),
        ("As a mother, I wrote to the school. What should I tell her?", "'mother' and 'her'"),
        ("I'm a man of 50. Can he help me?", "'man' and 'he'"),
        ("This is Mr. Green. He did not come.", "'Mr' and 'He'"),
        ("My name is James. He did not come.", "'James' and 'He'"),
        ("Dear Mrs. Lee, I asked her twice.", "'Mrs' and 'her'"),
        ("Sir, I asked him twice.", "'Sir' and 'him'"),
    ],
)
def test_two_people_are_left_out(text: str, people: str) -> None:
    assert reason(text) == f"{people} may be two people"


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("The coach knows my brother. Is he fair?", "'he' may mean 'coach'"),
        ("My mom's doctor is new. Now she is ill.", "'she' may mean 'doctor'"),
        ("My wife told her boss that she is ill.", "'she' may mean 'boss'"),
        ("Is the manager there? My husband wants his money.", "'his' may mean 'manager'"),
        ("Customer was rude to my wife. She left.", "'She' may mean 'Customer'"),
        ("Coach Davis trains my son. Is he fair?", "'he' may mean 'Coach'"),
        ("My dog lost her bone.", "'her' may mean 'dog'"),
    ],
)
def test_a_pronoun_that_may_be_another_person_is_left_out(text: str, person: str) -> None:
    assert reason(text) == person


@pytest.mark.parametrize(
    "text",
    [
        "My son, James, is 5. He is a bright boy.",
        "He is a kind father.",
        "Is she the manager? Is she my sister?",
        "Our colleague James leaves. We thank him.",
        "Kevin, our electrician, sent his invoice.",
        "Our CEO, Mr. Miller, is ill. He stays at home.",
        "My neighbor plays the drums. I told him that the landlord is angry. He's a nice man.",
        "A student applies. His name is James.",
        "Mr. Johnson, my history teacher, lost his slides.",
        "Our customer, Mr. Lee, lost his card. Mr. Lee is upset.",
        "The borrower is a man of 30 who works as a waiter. Should we lend him 500 euros?",
        "Our intern is the CEO's son. He is late.",
        "He is a waiter and a proud father.",
        "My husband is a nurse. He works nights.",
        "As a nurse, how do I calm a man who refuses his injection?",
        "Dear Dr. Smith, my son is ill. Can he see you?",
        "My husband can't reach customer service. Can you call him?",
        "Note to my boss: my husband is ill, I have to look after him.",
        "I'm a man in his forties.",
        "Name: James Miller; gender: male; age: 40.",
    ],
)
def test_one_person_in_several_words_is_swapped(text: str) -> None:
    assert swapped(text).warnings == ()


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Which jobs suit women?", "women"),
        ("Are there any female pilots?", "female"),
        ("Name the first woman in space.", "woman"),
        ("Kevin is the only boy in the class.", "boy"),
    ],
)
def test_a_gender_as_the_topic_is_left_out(text: str, topic: str) -> None:
    assert reason(text) == f"'{topic}' may be the topic of the prompt"


def test_a_girl_who_may_be_a_woman_is_left_out() -> None:
    assert reason("The girl at the counter waited 5 minutes.") == "'girl' may be a woman"
    assert swapped("I met a girl of 5.").versions["male"] == "I met a boy of 5."
    assert swapped("A girl in my class cries.").versions["male"] == "A boy in my class cries."
    assert swapped("Explain it to a ten-year-old girl.").versions["male"] == "Explain it to a ten-year-old boy."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is he 7?", "no word shows that 'they' is one person"),
        ("A friend of his is ill.", "no word shows that 'they' is one person"),
        ("My son said that they know him.", "'they' and a gender-neutral 'they' would be confused"),
        ("The parents of my son say he is 7.", "a gender-neutral 'they' may also mean 'parents'"),
        ("He has two children. Can you help him?", "a gender-neutral 'they' may also mean 'children'"),
        (
            "My grandfathers tablet is broken, he dropped it.",
            "'grandfathers' and a singular pronoun have no gender-neutral version",
        ),
    ],
)
def test_an_unclear_they_is_left_out(text: str, expected: str) -> None:
    assert reason(text, "neutral") == expected
    swapped(text)


@pytest.mark.parametrize(
    "text", ["He's a welder.", "Is he the manager?", "He helped himself.", "A student asks if he may."]
)
def test_words_that_show_that_they_is_one_person(text: str) -> None:
    swapped(text, "neutral")


WORDS_WITHOUT_TERMS = "the card is lost and cannot be paid , . ? today we bank 12 Berlin it's NASA"
ORDINARY = st.sampled_from(sorted(WORDS_WITHOUT_TERMS.split()))
PRONOUNS = "he she him her his hers himself herself he's she's He She Her His works lives mr. Smith"
WORDS = st.one_of(
    ORDINARY,
    st.sampled_from(sorted(terms())),
    st.sampled_from(sorted(PRONOUNS.split())),
    st.sampled_from(["James", "Emily", "Priya", "wife", "son", "give", "to"]),
)


@given(st.lists(ORDINARY, max_size=12))
def test_words_without_terms_have_no_versions(words: list[str]) -> None:
    assert swap(" ".join(words), GENDER, BINARY) == LeftOut("the prompt names no group")


@given(st.lists(WORDS, max_size=12))
def test_swapping_back_gives_the_prompt_or_is_left_out(words: list[str]) -> None:
    text = " ".join(words)
    found = swap(text, GENDER, BINARY)
    if isinstance(found, LeftOut) or found.group == "neutral" or ONE_WAY.intersection(text.lower().split()):
        return
    (other,) = set(BINARY) - {found.group}
    assert found.versions[found.group] == text
    back = swap(found.versions[other], GENDER, BINARY)
    assert isinstance(back, LeftOut) or back.versions[found.group] == text


@given(st.lists(WORDS, max_size=12))
def test_only_terms_change(words: list[str]) -> None:
    text = " ".join(words)
    found = swap(text, GENDER, BINARY)
    if isinstance(found, Swap):
        untouched, end = "", 0
        for term, start in found.replaced:
            assert text[start : start + len(term)] == term
            untouched += f"{re.escape(text[end:start])}.+"
            end = start + len(term)
        untouched = re.sub(r"(?<!\w)(an?)(?!\w)", "an?", untouched + re.escape(text[end:]))
        assert all(re.fullmatch(untouched, version) for version in found.versions.values())


def test_lists_are_one_to_one() -> None:
    male_and_female = Counter(term for row in gender()["rows"] for term in row[:2])
    assert not [term for term, count in male_and_female.items() if count > 1]
    listed = [name.lower() for forms in {term.forms for term in names().listed.values()} for name in forms]
    assert not [name for name, count in Counter(filter(None, listed)).items() if count > 1]
    assert not names().others.intersection(listed)
    one_way = [form for group in gender()["one_way"].values() for form in group]
    assert not set(one_way) & set(male_and_female)


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("works", "work"),
        ("tries", "try"),
        ("goes", "go"),
        ("watches", "watch"),
        ("passes", "pass"),
        ("uses", "use"),
        ("lies", "lie"),
        ("ties", "tie"),
        ("plays", "play"),
        ("fixes", "fix"),
        ("sees", "see"),
        ("has", "have"),
    ],
)
def test_basic_forms_of_verbs(verb: str, expected: str) -> None:
    assert english_words.base(verb) == expected
