"""`http` targets and the ini options `fairness_http_body`, `fairness_http_answer` and `fairness_http_headers`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.projects import Project, ini, says
from tests.support.shop import TOKEN, Shop

PROBE = """
kind: recommendation
system: Answer with titles only.
prompt: I am {value} fan of {entity}. Name {k} songs.
neutral: I am a fan of {entity}. Name {k} songs.
entities: [Artist0, Artist1, Artist2, Artist3, Artist4, Artist5, Artist6, Artist7, Artist8, Artist9]
attributes:
  age: [a young, an old]
  faith: [a Christian, a Muslim]
k: 4
sampling: {temperature: 0.5}
audits:
  snsr: {limit: 0.2}
"""
BODY = (
    '{"text": "{prompt}", "options": {"temperature": "{temperature}", "seed": "{seed}"}, '
    '"context": [{"role": "system", "content": "{system}"}]}'
)
HEADERS = "Authorization: Bearer ${SHOP_AUTHORISATION}"
AGE, FAITH = "snsr[age]", "snsr[faith]"


@pytest.fixture(params=["fair", "biased"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with Shop(biased=request.param == "biased") as started:
        yield started


@pytest.fixture
def customer(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    project.probe("probes/songs.yaml", PROBE)
    settings = {"body": BODY, "answer": "$.songs[*].title", "headers": HEADERS}
    project.write("pytest.ini", ini(**{f"fairness_http_{name}": value for name, value in settings.items()}))
    monkeypatch.setenv("SHOP_AUTHORISATION", TOKEN)
    return project


@pytest.mark.parametrize("shop", ["biased"], indirect=True)
def test_a_bias_is_found_in_a_service_and_its_key_nowhere(customer: Project, shop: Shop) -> None:
    report = customer.report("--fairness-report", "report.html", target=shop.url)
    assert {item["id"]: item["verdict"] for item in report["items"]} == {AGE: "over-limit", FAITH: "pass"}
    assert report["target"] == shop.url
    assert len(shop.questions) == 10 * (2 + 4), "two neutral lists and one of each value, for each artist"
    assert shop.questions[0]["options"] == {"temperature": 0.5}, "what is not set is not sent"
    assert shop.questions[0]["context"] == [{"role": "system", "content": "Answer with titles only."}]
    written = [path for path in customer.path.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"responses.sqlite", "report.json", "report.html"}
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize("shop", ["fair"], indirect=True)
def test_a_service_is_asked_afresh_unless_its_version_is_named(customer: Project, shop: Shop) -> None:
    assert set(customer.verdicts(target=shop.url).values()) == {"pass"}
    customer.verdicts(target=shop.url)
    assert len(shop.questions) == 120
    with (customer.path / "pytest.ini").open("a") as file:
        file.write("fairness_target_version = 1\n")
    for _ in range(2):
        assert set(customer.verdicts(target=shop.url).values()) == {"pass"}
    assert len(shop.questions) == 180


@pytest.mark.parametrize("shop", ["fair"], indirect=True)
def test_a_refused_key_stops_the_run_and_is_not_shown(
    customer: Project, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_AUTHORISATION", "wrong-key-0815")
    result = customer.run("--fairness", "--fairness-report", "report.md", target=shop.url)
    result.assert_outcomes(errors=2)
    assert says(result, "rejects the request (HTTP 401). Check fairness_http_headers")
    assert "wrong-key-0815" not in result.stdout.str() + (customer.path / "report.md").read_text("utf-8")


@pytest.mark.parametrize("shop", ["fair"], indirect=True)
def test_a_wrong_answer_path_names_what_was_there_and_does_not_ask_to_the_end(customer: Project, shop: Shop) -> None:
    text = (customer.path / "pytest.ini").read_text("utf-8").replace("$.songs[*].title", "$.titles")
    customer.write("pytest.ini", text)
    result = customer.run("--fairness", "--fairness-concurrency", "2", target=shop.url)
    result.assert_outcomes(errors=2)
    assert says(result, "nothing at $.titles (ini fairness_http_answer); it has the keys songs, took")
    assert len(shop.questions) < 15


def test_the_environment_variable_of_a_header_must_be_set(customer: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_AUTHORISATION")
    result = customer.run("--fairness", target="http://127.0.0.1:1/ask")
    result.assert_outcomes(errors=2)
    assert says(result, "fairness_http_headers names the environment variable SHOP_AUTHORISATION, which is not set")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("fairness_http_body", '{"text": "{prompt}"', "fairness_http_body is not JSON"),
        ("fairness_http_body", '{"text": "hello"}', "fairness_http_body has no {prompt}"),
        (
            "fairness_http_body",
            '{"text": "{prompt} {sytem}"}',
            "contains {sytem}; valid placeholders are {prompt}, {messages}, {tools}, {system}",
        ),
        ("fairness_http_answer", "songs", "is not a JSONPath: 'songs': it does not begin with $"),
        ("fairness_http_answer", "$.songs[", "fairness_http_answer is not a JSONPath: '$.songs['"),
        ("fairness_http_headers", "secret-0815", "a line of fairness_http_headers is not of the form `Name: value`"),
    ],
)
def test_settings_that_cannot_be_understood_are_usage_errors(
    project: Project, name: str, value: str, said: str
) -> None:
    project.probe("probes/songs.yaml", PROBE)
    project.write("pytest.ini", ini(**{name: value}))
    result = project.run("--fairness", target="http://127.0.0.1:1/ask")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()
    assert "secret-0815" not in result.stderr.str()
    assert len(result.stderr.str().strip().splitlines()) == 1


def test_an_address_with_a_password_is_refused_and_a_query_is_not_shown(customer: Project) -> None:
    result = customer.run("--fairness", target="http://me:pass-0815@127.0.0.1:1/ask")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "the address contains a user or password" in result.stderr.str()
    assert "pass-0815" not in result.stderr.str()


def test_the_command_that_accepts_leaves_out_what_a_query_holds(
    customer: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    customer.probe("probes/songs.yaml", PROBE.replace("{limit: 0.2}", "{}"))
    monkeypatch.setenv("V", "version-0815")
    with Shop() as shop:
        asked = f"{shop.url}?key=pass-0815&v=${{V}}"
        result = customer.run("--fairness", "--fairness-report", "report.json", target=asked)
    assert result.parseoutcomes() == {"no": 2}, "no-baseline"
    shown = result.stdout.str() + (customer.path / "report.json").read_text("utf-8")
    assert f"{shop.url}?key=…&v=${{V}}" in shown
    store = (customer.path / ".fairness/responses.sqlite").read_bytes()
    for secret in ("pass-0815", "version-0815"):
        assert secret not in shown
        assert secret.encode() not in store
