"""Messages of a service in place of answers: recognised by their form, and told from letters, stories and decisions."""

from __future__ import annotations

import pytest

from pytest_fairness.audits.answer_checks import service_message


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE html><html><head><title>502</title></head></html>",
        '{"error": {"code": 503, "message": "overloaded"}}',
        '{"statut": "erreur", "id": 17}',
        '[{"ok": false}]',
        'Traceback (most recent call last):\n  File "/app/main.py", line 3, in answer\nKeyError: 0',
        "java.lang.NullPointerException: null\n\tat org.example.Main.answer(Main.java:12)",
        "502 Bad Gateway",
        "Error 429: slow down",
        "We are sorry, too many users are here. Try again in a few minutes.",
        "Entschuldigung, unsere Server sind überlastet.",
        "Zu viele Anfragen.",
        "Toutes nos excuses, le service est indisponible.",
        "Lo sentimos, demasiados usuarios. Inténtelo de nuevo más tarde.",
        "Ci dispiace, il servizio non è raggiungibile.",
        "Desculpe, o servidor está fora do ar.",
        "Credito esaurito.",
        "You are number 12 in line.",
        '{"object": "error", "message": "maximum context length is 4096 tokens", "code": 400}',
        '{"detail": [{"type": "missing", "loc": ["body", "id"], "msg": "Field required"}]}',
        '{"id": "c-1", "object": "chat.completion", "choices": [], "usage": {"prompt_tokens": 9}}',
        "Back in 23h 59m 39s",
        "Hi {{user.first_name}}, your answer: {{completion.text}}",
        "<unk> \u2581the \u2581the of of",
        "Sie sind auf Platz 84 der Warteliste.",
        "Servicio interrumpido por tareas técnicas.",
    ],
)
def test_messages_of_a_service_are_recognised(text: str) -> None:
    assert service_message(text)


@pytest.mark.parametrize(
    "text",
    [
        "Dear Ms Weber, thank you. We regret that we could not offer you the position. Try again later.",
        "I'm sorry that I missed your call; I was busy and could not get back to you.",
        "We are sorry for the inconvenience. Send the broken lamp back, and our team will refund you.",
        "The server at the busy diner apologized, and the customers waited in line.",
        "He performs scheduled maintenance and checks the network of the plant.",
        "450 because the applicant has experience.",
        "Score: 503",
        '{"answer": "no", "reason": "income too low"}',
        '{"decision": "denied", "error": null}',
        "Leider konnten wir Ihre Bewerbung nicht berücksichtigen. Wir bitten um Verständnis.",
        "Nous sommes désolés, mais votre candidature n'a pas été retenue.",
        '{"message": "Dear Ann, thank you for your letter."}',
        '{"type": "lamp", "code": "A1"}',
        "Notre conseiller bancaire ne répond pas.",
        "Yes.",
        "",
    ],
)
def test_letters_stories_numbers_and_decisions_are_answers(text: str) -> None:
    assert service_message(text) == ""


def test_a_probe_whose_answers_are_json_may_name_errors() -> None:
    assert service_message('{"state": "error"}')
    assert service_message('{"state": "error"}', is_json=True) == ""


@pytest.mark.parametrize(
    ("text", "is_message"),
    [
        ("Access Denied. You don't have permission to access /chat on this server. Reference #18.2f", True),
        ("Aufgrund des hohen Andrangs können wir Ihr Anliegen nicht bearbeiten. Platz 7 der Warteliste.", True),
        ("I'm sorry, but I can't help you gain unauthorized access to the server.", False),
        ("I can't help with that.", False),
    ],
)
def test_a_refusal_is_a_message_if_it_speaks_of_load_limits_or_references(text: str, is_message: bool) -> None:
    assert bool(service_message(text, refused=True)) == is_message
