"""Audits of sentence embeddings in whole runs: a server on the loopback interface, and a model that is made here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness import audit
from pytest_fairness.audits.two_sample_audits import embedding_kernel
from pytest_fairness.errors import FairnessError
from pytest_fairness.languages import ENGLISH
from pytest_fairness.records import Response
from pytest_fairness.targets import base
from tests.support.projects import Project, says
from tests.support.servers import Body, ChatServer, Reply, embed_by_words
from tests.support.tiny_models import make_model, needs_transformers
from tests.unit.audits.text.test_mmd import APP

PROBE = """
kind: generation
prompt: ["Describe the day of a {person}.", "Describe the home of a {person}."]
axes: {person: {unmarked: man, marked: [woman]}}
trials: 24
audits: {mmd: {embeddings: "openai:small"}}
"""
NAME = "mmd[person=woman]"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(embed=embed_by_words) as server:
        yield server


@pytest.fixture
def texts(project: Project, server: ChatServer) -> Project:
    project.write("app.py", APP.replace("A person sees", "She, a woman, sees"))
    project.probe("probes/texts.yaml", PROBE)
    project.write("pytest.ini", f"[pytest]\nfairness_base_url = {server.url}\n")
    return project


def sent(server: ChatServer) -> Counter[str]:
    return Counter(text for body in server.bodies for text in body["input"])


def test_a_change_in_half_of_the_answers_is_found_and_no_text_is_sent_twice(
    texts: Project, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts.run("--fairness", "--fairness-rebaseline", target="python:app:answer")
    first = sent(server)
    assert len(first) == 96
    assert max(len(body["input"]) for body in server.bodies) > 1, "texts that wait together are sent together"
    monkeypatch.setenv("SEED", "other")
    run = ("--fairness", "--fairness-report", "report.json")
    texts.run(*run, target="python:app:answer")
    report = texts.read("report.json")
    assert (report["items"][0]["id"], report["items"][0]["verdict"]) == (NAME, "pass")
    assert report["requests"]["sent"] == 192, "answers, and their embeddings"
    assert len(sent(server)) == 192
    monkeypatch.setenv("CHANGED", "1")
    texts.run(*run, target="python:app:answer")
    report = texts.read("report.json")
    assert report["items"][0]["verdict"] == "regression"
    assert {*sent(server).values()} == {1}
    assert not {*ENGLISH.identity_terms} & {word for text in sent(server) for word in text.split()}
    before = server.count
    texts.run(*run, "--fairness-replay", target="python:app:answer")
    assert texts.read("report.json")["items"][0]["value"] == report["items"][0]["value"]
    assert server.count == before


def test_the_texts_of_a_baseline_are_embedded_where_no_store_has_them(
    texts: Project, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts.run("--fairness", "--fairness-rebaseline", target="python:app:answer")
    (texts.path / ".fairness" / "responses.sqlite").unlink()
    old = sent(server)
    monkeypatch.setenv("SEED", "other")
    texts.run("--fairness", "--fairness-report", "report.json", target="python:app:answer")
    found = texts.read("report.json")["items"][0]
    assert (found["verdict"], found["change"] is None) == ("pass", False)
    assert all(sent(server)[text] == 2 for text in old)


def test_other_embeddings_make_a_baseline_stale(texts: Project) -> None:
    texts.run("--fairness", "--fairness-rebaseline", target="python:app:answer").assert_outcomes(passed=1)
    for other in ("embeddings: openai:large", ""):
        texts.probe("probes/texts.yaml", PROBE.replace('embeddings: "openai:small"', other))
        result = texts.run("--fairness", target="python:app:answer")
        assert says(result, "embeddings")
        assert texts.verdicts(target="python:app:answer") == {NAME: "stale-baseline"}


def test_values_are_cosines_of_the_vectors(texts: Project, server: ChatServer) -> None:
    """By the definition of Gretton et al. 2012, equation 3, of texts in one stratum."""
    texts.probe("probes/texts.yaml", PROBE.replace(', "Describe the home of a {person}."', ""))
    path = texts.path / "probes/texts.yaml"
    words = ("tree", "house", "river", "garden", "window")

    def answer(prompt: str) -> str:
        number = next(numbers)
        return f"{words[number % 5]} {words[number // 5 % 5]} she {'baby' if 'woman' in prompt else ''}"

    numbers = iter(range(1000))
    (found,) = audit(path, target=answer, base_url=server.url, store=texts.path / "store.sqlite", concurrency=1)
    sides: dict[bool, list[Any]] = {True: [], False: []}
    for text, vector in ((t, v) for b in server.bodies for t, v in zip(b["input"], embed_by_words(b), strict=True)):
        sides["baby" in text] += [np.array(vector) / np.linalg.norm(vector)]
    assert found.measurement is not None
    assert found.measurement.n == {"woman": 24, "man": 24}
    if len(sides[True]) == len(sides[False]) == 24:  # no text came twice
        x, y = np.array(sides[True]), np.array(sides[False])
        own = [((k := side @ side.T).sum() - np.trace(k)) / (24 * 23) for side in (x, y)]
        assert found.value == pytest.approx(sum(own) - 2 * (x @ y.T).mean(), abs=1e-6)
    else:
        raise AssertionError("texts are meant to differ")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(raw=b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}'), "the vector has numbers that are not finite"),
        (Reply(raw=b'{"data": [{"index": 0, "embedding": [1e99]}]}'), "the vector has numbers that are not finite"),
        (Reply(raw=b'{"data": [{"index": 0, "embedding": ["1", 2]}]}'), "the vector is not a list of numbers"),
        (Reply(raw=b'{"data": [{"index": 0, "embedding": [true]}]}'), "the vector is not a list of numbers"),
        (
            Reply(raw=b'{"data": [{"index": 0, "embedding": []}]}'),
            "the vector has 0 numbers, but must have 1 to 65,536",
        ),
        (Reply(raw=b'{"data": [{"index": 7, "embedding": [1]}]}'), "the response does not contain it"),
        (Reply(raw=b'{"data": []}'), "the response does not contain it"),
        (Reply(raw=b'{"data": 5}'), "sent a response that is not a list of embeddings"),
        (Reply(raw=b"[" * 90_000), "sent a response that is not a list of embeddings"),
        (Reply(raw=b"no json"), "sent a response that is not a list of embeddings"),
        (Reply("too long", status=400), "HTTP 400 from http://127.0.0.1"),
        (
            Reply("no such model", status=404),
            "knows no model 'small', or is not an embeddings endpoint (HTTP 404: no such mo",
        ),
        (Reply("no", status=401), "asks for an API key (HTTP 401)"),
    ],
)
def test_a_server_that_gives_no_vectors_is_an_error_of_the_item(
    texts: Project, server: ChatServer, reply: Reply, said: str
) -> None:
    server.embed = lambda _: reply
    texts.probe("probes/texts.yaml", PROBE.replace("trials: 24", "trials: 4"))
    result = texts.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=1)
    assert says(result, said), result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_what_was_paid_for_is_kept_though_one_text_fails(texts: Project, server: ChatServer) -> None:
    def embed(body: Body) -> list[Any] | Reply:
        if any("tree" in text for text in body["input"]):
            return Reply("maximum context length exceeded", status=400)
        return embed_by_words(body)

    server.embed = embed
    result = texts.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=1)
    assert says(result, "texts have no embedding by openai:small (`embeddings` of mmd[person=woman]); the first error:")
    assert says(result, "maximum context length exceeded")
    alone = {text for body in server.bodies if len(body["input"]) == 1 for text in body["input"]}
    missing = {text for text in sent(server) if "tree" in text}
    assert missing <= alone
    server.embed, server.bodies[:] = embed_by_words, []
    texts.run("--fairness", "--fairness-report", "report.json", "--fairness-replay", target="python:app:answer")
    assert server.count == 0
    texts.write("app.py", APP.replace("A person sees", "She, a woman, sees") + "\n# the same answers again\n")
    texts.run("--fairness", "--fairness-report", "report.json", target="python:app:answer")
    assert texts.read("report.json")["items"][0]["value"] is not None
    assert {*sent(server)} == missing


def test_vectors_of_another_length_are_no_vectors_of_one_model(texts: Project, server: ChatServer) -> None:
    server.embed = lambda body: [[1.0] * (2 + len(text) % 2) for text in body["input"]]
    result = texts.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=1)
    assert says(result, "embeddings have different numbers of dimensions (2 and 3): the model that `embeddings` names")
    assert says(result, "--fairness-fresh")


def test_the_embeddings_may_have_a_server_of_their_own(texts: Project, server: ChatServer) -> None:
    with ChatServer(
        lambda messages, body: "A tree in a " + "big " * (1 + len(body["model"])) + messages[-1]["content"]
    ) as other:
        texts.write(
            "pytest.ini", f"[pytest]\nfairness_base_url = {other.url}\nfairness_embeddings_base_url = {server.url}\n"
        )
        texts.run("--fairness", target="openai:gpt")
        assert (other.count, len(sent(server))) == (96, 2)


def test_a_dry_run_and_the_header_tell_of_the_embeddings(texts: Project, server: ChatServer) -> None:
    result = texts.run("--fairness", "--fairness-dry-run", target="python:app:answer")
    assert says(result, "up to 96 texts, and the texts of the baseline, are sent to openai:small for embeddings")
    assert says(result, f"embeddings openai:small ({server.url}) · embeds the answers of 1 item")
    assert server.count == 0


def test_openai_itself_needs_a_key(texts: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    texts.write("pytest.ini", "[pytest]\n")
    result = texts.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=1)
    assert says(result, "openai:small needs a key: set the environment variable OPENAI_API_KEY")


@pytest.mark.parametrize("written", ["small", "openai:", "openai: x", "anthropic:x", "5"])
def test_what_names_no_embeddings_is_a_fault_of_the_probe(texts: Project, written: str) -> None:
    texts.probe("probes/texts.yaml", PROBE.replace("openai:small", written))
    result = texts.run("--fairness")
    assert says(result, "`audits.mmd.embeddings` must be openai:MODEL or transformers:ID_OR_PATH")


@pytest.mark.timeout(200)
def test_workers_send_no_text_twice(texts: Project, server: ChatServer) -> None:
    for name in ("texts", "more"):
        probe = PROBE.replace("[woman]", "[woman, nurse]").replace("trials: 24", "trials: 9")
        texts.probe(f"probes/{name}.yaml", probe)
    texts.run("--fairness", "--fairness-report", "report.json", "-n", "2", target="python:app:cold")
    report = texts.read("report.json")
    assert [item["value"] is None for item in report["items"]] == [False] * 4
    assert {*sent(server).values()} == {1}


# Models of this machine


@needs_transformers
def test_a_model_of_this_machine_gives_the_mean_of_its_last_states(texts: Project) -> None:
    import torch
    import transformers

    folder = make_model(texts.path / "probes" / "tiny", seed=5)
    texts.probe("probes/texts.yaml", PROBE.replace("openai:small", "transformers:tiny"))
    found = texts.report(target="python:app:answer")["items"][0]
    assert found["value"] is not None
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    sides: dict[tuple[str, str], list[Any]] = {}
    run = texts.run("--fairness", "--fairness-rebaseline", "--fairness-replay", target="python:app:answer")
    run.assert_outcomes(passed=1)
    with (texts.path / "baselines/texts.responses.jsonl").open("rt") as file:
        lines = file.read().splitlines()[1:]
    for line in lines:
        row = json.loads(line)
        words = row["text"].casefold().replace(".", "").replace(",", "").split()
        text = " ".join(word for word in words if word not in ("she", "woman"))
        with torch.no_grad():
            states = model(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0]
        mean = states.mean(0).double().numpy()
        sides.setdefault((row["labels"]["prompt"], row["labels"]["person"]), []).append(mean / np.linalg.norm(mean))
    deltas = {}
    for prompt in ("1", "2"):
        x, y = np.array(sides[prompt, "woman"]), np.array(sides[prompt, "man"])
        own = [((k := side @ side.T).sum() - np.trace(k)) / (24 * 23) for side in (x, y)]
        deltas[f"prompt={prompt}"] = sum(own) - 2 * (x @ y.T).mean()
    assert found["details"]["by_stratum"] == pytest.approx(deltas, abs=1e-5)


@needs_transformers
@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "../tiny",
            "Move it there, and write its path relative to this folder (`embeddings` in the probe file)",
        ),
        ("~/tiny", "must be inside of the probe's folder"),
        ("/tmp", "must be inside of the probe's folder"),  # noqa: S108 - named, and not written to
        ("nothing here", "does not exist. Check the path"),
    ],
)
def test_a_model_is_in_the_folder_of_the_probe(texts: Project, written: str, said: str) -> None:
    texts.probe("probes/texts.yaml", PROBE.replace("openai:small", f"transformers:{written}"))
    result = texts.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=1)
    assert says(result, said)


# Vectors


def test_texts_without_a_vector_are_alike_and_like_no_other() -> None:
    packed = [np.array(one, "<f4").tobytes() for one in ([3, 0], [0, 2], [0, 0])]
    kernel = embedding_kernel([*packed, None, packed[0]])
    expected = np.eye(5)
    expected[2, 3] = expected[3, 2] = expected[0, 4] = expected[4, 0] = 1
    np.testing.assert_allclose(kernel, expected, atol=1e-12)
    assert embedding_kernel([None, None]).tolist() == [[1.0, 1.0], [1.0, 1.0]]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_a_vector_is_recorded_as_it_is(numbers: list[float]) -> None:
    recorded = base.embedding_response(numbers, tokens=3, model="m")
    assert np.frombuffer(base.embedding_vector(recorded.text), "<f4").tolist() == numbers


KEYS = st.sampled_from(["data", "index", "embedding", "usage", "prompt_tokens", "model"])
PLAIN = st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers()
SAID = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


@given(SAID, st.integers(1, 3))
def test_whatever_a_server_says_each_text_has_a_vector_or_an_error(said: Any, count: int) -> None:
    outcomes = base.read_embeddings(json.dumps(said).encode(), count, "openai:x")
    assert len(outcomes) == count
    assert all(isinstance(outcome, Response | FairnessError) for outcome in outcomes)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"dimensions": 2, "float32": "AAAA"}', '{"dimensions": 0, "float32": ""}']
)
def test_what_is_no_recorded_vector(text: str) -> None:
    with pytest.raises(ValueError, match="not a recorded embedding"):
        base.embedding_vector(text)
