"""Reader of numbers in answers."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_fairness.answers import numbers, reading
from pytest_fairness.answers.numbers import Unread, spelled
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes.recorded_rows import text_field
from pytest_fairness.records import Answer, Json, NumberFormat, Prompt, Request, Response, Status
from tests.support import deciders

SCORE = NumberFormat(0, 100, "points")
SALARY = NumberFormat(0, 200_000, "USD")
SCORED = deciders.probe(
    [("Male", None), ("Female", None)],
    answer={"number": {"min": 0, "max": 100, "unit": "points"}},
    truth=None,
    audits={"mean_gap": {"tolerance": 4}},
)
NONE, SEVERAL, RANGE, OUTSIDE, UNIT, SEPARATOR = Unread


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("72", 72),
        ("72.", 72),
        ("0", 0),
        ("**72**", 72),
        ("~72", 72),
        ("- 72", 72),
        ("Score: 72", 72),
        ("**Score:** 72/100", 72),
        ("Score (0-100): 72", 72),
        ("Score - 72", 72),
        ("My final answer is 72.", 72),
        ("$\\boxed{72}$", 72),
        ("72, because she has 10 years of experience.", 72),
        ("I'd rate this application a 72 out of 100.", 72),
        ("72 pts", 72),
        ("8/10", 80),
        ("8 out of 10", 80),
        ("Score: 72 (out of 80)", 90),
        ("Score: 8 of 10 stars", 80),
        ("85%", 85),
        ("72,5", 72.5),
        ("85.000", 85),
        ("On a scale of 0 to 100, I would give 70.", 70),
        ("In 2024 the score was 70", 70),
        ("He is 39-year-old and works 40 hours. I would say 70.", 70),
        ("1. Experience: 8 years\n2. Education: fine\nScore: 65", 65),
        ("Technical score: 80\nCommunication score: 70\nOverall score: 75", 75),
        ("40 + 30 = 70", 70),
        ("Seventy-five (75)", 75),
        ("I'd say 70, in the range of 60 to 80", 70),
        ("Risk: 72", 72),
        ("### 72", 72),
        ("72 - strong candidate", 72),
        ("<score>72</score>", 72),
        ("Score [0-100]: 72, confidence: 90%", 72),
        ("Mark is 39 and has the reference number 12: I give him 72.", 72),
    ],
)
def test_a_score_is_read(text: str, number: float) -> None:
    assert numbers.read(text, SCORE) == number


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", NONE),
        ("eighty-five", NONE),
        ("eighty-five, after 5 years", UNIT),
        ("I'd say 70, maybe 75", SEVERAL),
        ("Technical score: 80\nCommunication score: 70", SEVERAL),
        ("2. 70", SEVERAL),
        ("70 or 75", SEVERAL),
        ("Score: 70, maybe 75", SEVERAL),
        ("70 would be too high, 60 is right", SEVERAL),
        ("between 80 and 90", RANGE),
        ("80-90", RANGE),
        ("It is somewhere between 80 and 90", RANGE),
        ("Score: 80\u201390", RANGE),
        ("-5", OUTSIDE),
        ("Score: -5", OUTSIDE),
        ("Score: \u22125", OUTSIDE),
        ("150", OUTSIDE),
        ("1e400", OUTSIDE),
        ("at least 70", NONE),
        ("70+", NONE),
        ("score of at least 70", NONE),
        ("Score: 70 credits", UNIT),
        ("$70", UNIT),
        ("He is 39 and works 40 hours.", UNIT),
        ("7/1/2024", NONE),
        ("24/7", UNIT),
        ("The applicant meets 5 of 10 criteria.", UNIT),
        ("She fulfils 3/4 of the requirements.", UNIT),
        ("Score: 85% of the criteria", UNIT),
        ("GPT-4 is sure.", NONE),
        ("Question 12", NONE),
        ("٧٢", NONE),  # only the digits 0 to 9 are read
        ("½", NONE),
        ("NaN", NONE),
        ("503 Service Unavailable", UNIT),
        ("Error: 50", NONE),
        ("HTTP 429: rate limit of 60 exceeded", UNIT),
        ("no healthy upstream", NONE),
        ("Please retry after 30 seconds", UNIT),
    ],
)
def test_other_answers_hold_no_score(text: str, reason: Unread) -> None:
    assert numbers.read(text, SCORE) is reason


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("$85,000", 85_000),
        ("\\$85,000", 85_000),
        ("US$85000", 85_000),
        ("85k", 85_000),
        ("$85K", 85_000),
        ("85 thousand dollars", 85_000),
        ("$0.085 million", 85_000),
        ("USD 85,000", 85_000),
        ("85,000 USD per year", 85_000),
        ("$85,000/year", 85_000),
        ("85.000,00 $", 85_000),
        ("$85,000.00", 85_000),
        ("85 000", 85_000),
        ("85\u202f000 $", 85_000),
        ("85'000", 85_000),
        ("1,00,000", 100_000),
        ("1.5 lakh", 150_000),
        ("Salary: 85000", 85_000),
        ("With 5 years of experience, I suggest $85,000 plus a 401(k).", 85_000),
        ("Base: $85,000\nBonus: $10,000\nTotal: $95,000", 95_000),
        ("$0", 0),
    ],
)
def test_a_salary_is_read(text: str, number: float) -> None:
    assert numbers.read(text, SALARY) == number


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\u20ac85,000", UNIT),
        ("85.000,00 \u20ac", UNIT),
        ("C$85,000", UNIT),
        ("$40 per hour", UNIT),
        ("$7,000 a month", UNIT),
        ("a monthly salary of $7,000", UNIT),
        ("85%", UNIT),
        ("$80k-$90k", RANGE),
        ("$80-90k", RANGE),
        ("between $80,000 and $90,000", RANGE),
        ("$85,000 or $90,000", SEVERAL),
        ("$85.000", SEPARATOR),  # 85 or 85,000: both are in the range
        ("1.234,567.8", SEPARATOR),
        ("85,000,00", SEPARATOR),
        ("-$5", OUTSIDE),
        ("$-5", OUTSIDE),
        ("$1.2 million", OUTSIDE),
        ("12 lakh", OUTSIDE),
    ],
)
def test_other_answers_hold_no_salary(text: str, reason: Unread) -> None:
    assert numbers.read(text, SALARY) is reason


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"score": 72, "confidence": 0.9}', "JSON with the numbers score, confidence"),
        ('{"result": {"score": "72/100"}, "id": 5}', "JSON with the numbers id"),
        ('```json\n{"score": 72}\n```', "JSON with the numbers score"),
        ('Here it is: {"score": 72}', "JSON with the numbers score"),
        ('{"score": null}', "JSON"),
        ('{"score": true}', "JSON"),
        ('{"score": 7', NONE),
        ('{"error": "overloaded", "code": 50}', "JSON with the numbers code"),
        ("[72, 73]", NONE),
        ("[72]", 72),
        ("[[72]]", 72),
        ("Rating: [[72]]", 72),
    ],
)
def test_json_without_a_path_is_unreadable_with_its_numeric_keys(text: str, found: float | str) -> None:
    assert numbers.read(text, SCORE) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"risk": 72, "id": 5}', 72),
        ('{"result": {"Risk": "72/100"}, "id": 5}', 72),
        ('{"risk": NaN}', NONE),
        ('{"risk": 1e999}', OUTSIDE),
        ('{"risk": 0}', 0),
        ('{"risk": 1, "other": {"risk": 2}}', SEVERAL),
    ],
)
def test_the_number_at_the_key_that_the_probe_names_is_read(text: str, found: float | Unread) -> None:
    assert numbers.read(text, NumberFormat(0, 100, "points", name="risk")) == found


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("63.123", 63.123),
        (" 63.123\n", 63.123),
        ("63.1", 63.1),
        ("85.000", SEPARATOR),  # a person may mean thousands, and a program would write 85.0
        ("63.120", SEPARATOR),
        ("Salary: 63.123", SEPARATOR),
        ("63.123 USD", SEPARATOR),
    ],
)
def test_a_number_as_programs_write_it_has_a_decimal_point(text: str, number: float | Unread) -> None:
    assert numbers.read(text, SALARY) == number


def test_three_decimals_are_thousands_if_only_thousands_are_possible() -> None:
    assert numbers.read("63.123", NumberFormat(20_000, 200_000, "USD")) == 63_123
    assert numbers.read("63.123", NumberFormat(0, 200_000, "USD", decimal=",")) == 63_123


def test_settings_choose_the_name_the_ends_of_ranges_and_the_decimal_mark() -> None:
    named = NumberFormat(0, 100, name="risk")
    assert numbers.read('{"score": 5, "Risk": 72}', named) == 72
    assert numbers.read("Age: 39\nRisk is 72", named) == 72
    middle = NumberFormat(0, 200_000, "USD", ranges="middle")
    assert numbers.read("$80-90k", middle) == 85_000
    assert numbers.read("between $80,000 and $300,000", middle) is OUTSIDE
    assert numbers.read("$85.000", NumberFormat(0, 200_000, "USD", decimal=",")) == 85_000
    assert numbers.read("$85.000", NumberFormat(0, 200_000, "USD", decimal=".")) == 85
    assert numbers.read("$85.000", NumberFormat(10_000, 200_000, "USD")) == 85_000
    assert numbers.read("$7,000 a month", NumberFormat(0, 9_999, "USD per month")) == 7_000
    assert numbers.read("-3.5 \u00b0C", NumberFormat(-50, 50)) is UNIT
    assert numbers.read("-3.5", NumberFormat(-50, 50)) == -3.5
    percent = NumberFormat(-50, 50, "%")
    assert numbers.read("minus 5 percent", percent) == -5
    assert numbers.read("- 5 %", percent) is UNIT  # a bullet or a minus
    assert numbers.read("a decrease of 5%", percent) is UNIT
    assert numbers.read("4/5", NumberFormat(1, 5)) == 4
    assert numbers.read("8/10", NumberFormat(1, 5)) is UNIT  # no conversion, as the scale does not begin at 0
    assert numbers.read("85%", NumberFormat(0, 1)) == 0.85
    assert numbers.read("85% probability", NumberFormat(0, 1, name="probability")) == 0.85
    assert numbers.read("12.5 percent", NumberFormat(0, 300, "%")) == 12.5
    assert numbers.read("$\u2009400", SALARY) == 400


def answer(text: str | None, wanted: NumberFormat = SCORE, finish_reason: str | None = None) -> tuple[Status, object]:
    prompt = Prompt(Request("", answer_format="number"), {}, 0, number=wanted)
    found = reading.answer(prompt, None if text is None else Response(text, finish_reason), ENGLISH)
    return found.status, found.content


def test_a_missing_number_is_never_zero() -> None:
    assert answer("0") == (Status.OK, 0.0)
    assert answer("") == (Status.UNREADABLE, None)
    assert answer(None) == (Status.FAILED, None)
    assert answer("I'm sorry, but I can't help with that.") == (Status.REFUSED, None)
    assert answer("72", finish_reason="content_filter") == (Status.BLOCKED, None)


def test_a_refusal_that_mentions_a_number_stays_a_refusal_unless_the_number_is_marked() -> None:
    assert answer("I'm sorry, but I can't provide a salary. Others give $85,000.", SALARY) == (Status.REFUSED, None)
    assert answer("I can't give an exact score, but here is one.\nScore: 72") == (Status.OK, 72)


def test_a_number_that_may_have_been_cut_off_is_not_read() -> None:
    assert answer("Score: 7", finish_reason="length") == (Status.CUT_OFF, None)
    assert answer('{"score": 7', finish_reason="length") == (Status.CUT_OFF, None)
    assert answer("72, because of the", finish_reason="length") == (Status.OK, 72)


def answer_in_field(written: Json) -> Answer:
    return reading.recorded(SCORED.reading.recorded_prompt({}, 0), text_field(written), SCORED.language)


@pytest.mark.parametrize(("written", "number"), [(72, 72), (72.5, 72.5), ("72", 72), (0, 0), (-0.0, 0), (1e-05, 1e-05)])
def test_numbers_in_files_and_fields_of_services_are_read(written: object, number: float) -> None:
    found = answer_in_field(written)
    assert (found.status, found.content) == (Status.OK, number)


@pytest.mark.parametrize("written", [math.nan, math.inf, True, "", [], {}, "n/a", "null"])
def test_other_values_in_files_are_unreadable(written: object) -> None:
    assert answer_in_field(written).status is Status.UNREADABLE


@given(
    st.floats(0, 200_000, allow_subnormal=False),
    st.sampled_from(["{}", "Score: {}", "{} USD", "I'd say {}.", "[[{}]]"]),
)
@example(0.30000000000000004, "{}")
@example(5e-324, "{}")
def test_every_number_in_the_range_is_read_as_written(number: float, sentence: str) -> None:
    wanted = NumberFormat(0, 200_000, "USD", decimal=".")
    assert numbers.read(sentence.format(json.dumps(number)), wanted) == pytest.approx(number, rel=1e-12)


@given(st.integers(0, 10**15))
def test_thousands_separators_change_nothing(number: int) -> None:
    for mark in ",\u202f'_ ":
        assert spelled(f"{number:,}".replace(",", mark), None) == (float(number),)


@given(st.text())
@example("9" * 5000)
@example("1.2.3.4")
@example("." * 50 + "7")
def test_any_text_is_read_or_unreadable(text: str) -> None:
    for wanted in (SCORE, SALARY, NumberFormat(-5, 5, "%", "n", "middle", ",")):
        found = numbers.read(text, wanted)
        assert isinstance(found, str) or wanted.min <= found <= wanted.max


def test_a_long_list_of_numbers_takes_no_long_time() -> None:
    assert numbers.read("7 " * 100_000, SCORE) == 7
    assert numbers.read("7, 8, " * 50_000, SCORE) is SEVERAL


@pytest.mark.parametrize(
    ("unit", "written"),
    [
        (
            "years",
            "3 years and 6 months|3 Jahre, 6 Monate|3 años y 6 meses|3 ans et 6 mois|3 anni e 6 mesi|3 anos e 6 meses",
        ),
        (
            "minutes",
            "1 hour and 30 minutes|1 Stunde und 30 Minuten|1 hora y 30 minutos|1 heure et 30 minutes|1 ora e 30 minuti",
        ),
        (
            "cm",
            "1 m 80 cm|1 metro e 80 cm|1 mètre 80 cm|1 Meter und 80 Zentimeter|1 metro y 80 centímetros|1 m e 80 cm",
        ),
        ("", "5 feet 11 inches|5'11\"|2 kilos y 300 gramos|2 Kilo 300 Gramm"),
    ],
)
def test_neither_number_of_an_amount_in_two_units_is_read_in_any_language(unit: str, written: str) -> None:
    wanted = NumberFormat(min=0, max=1000, unit=unit)
    for amount in written.split("|"):
        for text in (amount, f"The answer is {amount}.", f"{amount}, because of the rest."):
            assert not isinstance(numbers.read(text, wanted, cut=False), float), text
    assert numbers.read("80 cm", NumberFormat(min=0, max=1000, unit="cm"), cut=False) == 80
