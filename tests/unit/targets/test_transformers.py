"""Targets `transformers:…`, with small random models that transformers really loads."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import Target, check_spec, open_target, serve
from pytest_fairness.targets.shared import TargetServer
from pytest_fairness.targets.transformers import TransformersTarget
from pytest_fairness.targets.transformers_models import GROW_AFTER, BatchSize
from tests.support.asking import engine_for, settings_in, texts
from tests.support.tiny_models import CHAT_TEMPLATE, make_gguf, make_model, needs_transformers

QUESTIONS = [
    Request(
        f"Name {'one ' * number}gift.",
        sampling=Sampling(max_tokens=6 + number, temperature=1.0, top_p=0.9 if number % 2 else None),
        trial=number,
    )
    for number in range(6)
]
NURSE = Request("The nurse said", answer_format="likelihood", continuation=" that she was tired.")
TEXTS = [
    NURSE,
    Request("", answer_format="likelihood", continuation="The farmer is brave."),
    Request("Zoë 日本", answer_format="likelihood", continuation="語 naïve \N{GRINNING FACE}!"),
    Request("The", answer_format="likelihood", continuation="re is one gift for the tall man by the door."),
]

pytestmark = needs_transformers


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    """Threads that wait for each other, where cores are shared, take longer than these models do alone."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "gpt2", kind="gpt2", chat=False)


@pytest.fixture(scope="module")
def model(llama: Path) -> Any:
    return loaded(llama)


def loaded(folder: Path) -> Any:
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


def target_of(folder: Path, **settings: Any) -> TransformersTarget:
    target = open_target(f"transformers:{folder}", settings_in(folder, device="cpu", **settings))
    assert isinstance(target, TransformersTarget)
    return target


def ask(target: Target, *requests: Request, alone: bool = False) -> list[Response]:
    async def all_of_them() -> list[Response]:
        await target.open()
        try:
            if alone:
                return [await target.ask(request) for request in requests]
            return list(await asyncio.gather(*[target.ask(request) for request in requests]))
        finally:
            await target.close()

    return asyncio.run(all_of_them())


def logs(response: Response) -> list[float]:
    found: list[float] = json.loads(response.text)["log_probabilities"]
    return found


# Batches


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_an_answer_does_not_depend_on_its_batch(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = request.getfixturevalue(kind)
    together = target_of(folder)
    answer, sizes = together._answer, list[int]()

    def recorded(batch: Any) -> Any:
        sizes.append(len(batch))
        return answer(batch)

    monkeypatch.setattr(together, "_answer", recorded)
    answers = ask(together, *QUESTIONS)
    assert sizes == [len(QUESTIONS)]
    assert ask(target_of(folder), *QUESTIONS, alone=True) == answers
    assert ask(target_of(folder), *reversed(QUESTIONS)) == answers[::-1]
    assert len({answer.text for answer in answers}) == len(answers)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_likelihoods_agree_with_the_model_asked_token_by_token(kind: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(kind)
    together, alone = (ask(target_of(folder), *TEXTS, alone=alone) for alone in (False, True))
    for asked, batched, single in zip(TEXTS, together, alone, strict=True):
        expected = token_by_token(folder, asked)
        assert logs(single) == pytest.approx(expected, abs=2e-4)
        assert logs(batched) == pytest.approx(expected, abs=2e-4)


def token_by_token(folder: Path, request: Request) -> list[float]:
    """From the definition: the probability of each token after all that come before it, one pass of the model each."""
    import torch
    import transformers

    model, tokenizer = loaded(folder), transformers.AutoTokenizer.from_pretrained(folder)
    before = tokenizer(request.prompt, add_special_tokens=False)["input_ids"]
    whole = tokenizer(request.prompt + str(request.continuation), add_special_tokens=False)["input_ids"]
    # The tokens that both have in common at their beginning; what follows is the continuation's.
    shared = next((at for at, (one, two) in enumerate(zip(before, whole, strict=False)) if one != two), len(before))
    found = []
    for place in range(shared, len(whole)):
        with torch.no_grad():
            scores = model(torch.tensor([[tokenizer.bos_token_id, *whole[:place]]])).logits[0, -1].double()
        found.append(float(scores[whole[place]] - scores.logsumexp(0)))
    return found


def test_two_parts_of_a_text_have_the_likelihood_of_the_whole(llama: Path) -> None:
    whole = Request("", answer_format="likelihood", continuation="The nurse said that she was tired.")
    first = Request("", answer_format="likelihood", continuation="The nurse said")
    total, head, tail = (math.fsum(logs(answer)) for answer in ask(target_of(llama), whole, first, NURSE))
    assert total == pytest.approx(head + tail, abs=1e-3)


def test_tokens_are_the_pieces_of_the_continuation(llama: Path) -> None:
    answers = ask(target_of(llama), *TEXTS)
    assert "".join(json.loads(answers[0].text)["tokens"]) == NURSE.continuation
    assert answers[0].prompt_tokens == 1 + len(logs(ask(target_of(llama), replace(
        NURSE, prompt="", continuation=f"{NURSE.prompt}{NURSE.continuation}"))[0]))  # fmt: skip
    assert answers[0].completion_tokens == 0


# Sampling


def test_equal_seeds_give_equal_answers(llama: Path) -> None:
    seeded = Request("Name one gift.", sampling=Sampling(max_tokens=12, temperature=1.0, seed=5))
    unseeded = replace(seeded, sampling=Sampling(max_tokens=12, temperature=1.0))
    answers = texts(
        ask(
            target_of(llama),
            seeded,
            replace(seeded, sampling=replace(seeded.sampling, seed=6)),
            unseeded,
            replace(unseeded, trial=1),
        )
    )
    assert len(set(answers)) == 4
    assert texts(ask(target_of(llama), seeded, replace(unseeded, trial=1))) == [answers[0], answers[3]]


def test_temperature_0_takes_the_likeliest_token_each_time(llama: Path, model: Any) -> None:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    tokens = tokenizer("<user>Name one gift.</s><assistant>", add_special_tokens=False)["input_ids"]
    prompt = len(tokens)
    while len(tokens) < prompt + 10 and tokens[-1] != tokenizer.eos_token_id:
        with torch.no_grad():
            tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    greedy = Request("Name one gift.", sampling=Sampling(max_tokens=10, temperature=0))
    (answer, *_) = ask(target_of(llama), greedy, *QUESTIONS)
    assert answer.text == tokenizer.decode(tokens[prompt:], skip_special_tokens=True)
    assert answer.prompt_tokens == prompt


@pytest.mark.parametrize(
    ("sampling", "kept"), [(Sampling(temperature=1.5), None), (Sampling(temperature=1.0, top_p=0.6), 0.6)]
)
def test_tokens_are_sampled_with_the_models_probabilities(
    llama: Path, model: Any, sampling: Sampling, kept: float | None
) -> None:
    import torch

    from pytest_fairness.targets.transformers import Defaults, TokenSampler

    with torch.no_grad():
        scores = model(torch.tensor([[0, 45, 50]])).logits[0, -1]
    assert sampling.temperature is not None
    expected = (scores / sampling.temperature).softmax(-1)
    if kept is not None:
        order = expected.argsort(descending=True)
        inside = int((expected[order].cumsum(-1) < kept).sum()) + 1
        expected[order[inside:]] = 0
        expected /= expected.sum()
    draws = 4000
    drawing = TokenSampler(
        [Request("x", sampling=sampling, trial=trial) for trial in range(draws)], Defaults(), torch, torch.device("cpu")
    )
    drawn = drawing(None, scores.expand(draws, -1)).argmax(-1)
    counts = torch.bincount(drawn, minlength=len(scores)) / draws
    assert float((counts - expected).abs().sum()) < 0.25, "total variation of 4000 draws of some 300 tokens"
    assert not counts[expected == 0].any()
    top = int(expected.argmax())
    assert float(counts[top]) == pytest.approx(float(expected[top]), abs=0.03)


def test_groups_that_share_a_seed_do_not_share_their_noise(llama: Path) -> None:
    import torch

    from pytest_fairness.targets.transformers import Defaults, TokenSampler

    same = Sampling(temperature=1.0, seed=5)
    asked = [Request(name, sampling=same).with_own_seed() for name in ("Kim", "Lou")]
    drawing = TokenSampler(asked, Defaults(), torch, "cpu")
    one, other = drawing(None, torch.zeros(2, 500))
    assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.2


def test_generation_settings_of_the_model_are_the_defaults(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model")
    settings = folder / "generation_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "do_sample": True, "top_k": 1}))
    asked = [Request("Name one gift.", sampling=Sampling(max_tokens=8), trial=trial) for trial in range(3)]
    assert len(set(texts(ask(target_of(folder), *asked)))) == 1, "of one candidate, each draw is the same"


# Prompts


def test_prompts_are_written_in_the_chat_template(llama: Path, gpt2: Path, tmp_path: Path) -> None:
    asked = Request("Name one gift.", "Be brief.", Sampling(max_tokens=5, temperature=0))
    (answer,) = ask(target_of(llama), asked)
    (plain,) = ask(target_of(gpt2), asked)
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    in_template = "<system>Be brief.</s><user>Name one gift.</s><assistant>"
    assert answer.prompt_tokens == len(tokenizer(in_template, add_special_tokens=False)["input_ids"])
    assert plain.prompt_tokens == len(tokenizer("Be brief.\n\nName one gift.", add_special_tokens=False)["input_ids"])
    strict = shutil.copytree(llama, tmp_path / "strict")
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + CHAT_TEMPLATE
    (strict / "chat_template.jinja").write_text(refusing)
    (merged,) = ask(target_of(strict), asked)
    in_template = "<user>Be brief.\n\nName one gift.</s><assistant>"
    assert merged.prompt_tokens == len(tokenizer(in_template, add_special_tokens=False)["input_ids"])


def test_finish_reason_and_tokens_are_reported(llama: Path) -> None:
    short = Request("Name one gift.", sampling=Sampling(max_tokens=3, temperature=1.0))
    (answer,) = ask(target_of(llama), short)
    assert (answer.completion_tokens, answer.finish_reason) == (3, "length")
    endless = [replace(short, sampling=Sampling(temperature=1.0), trial=trial) for trial in range(8)]
    for ended in ask(target_of(llama), *endless):
        room = 256 - (ended.prompt_tokens or 0)
        assert ended.finish_reason == ("length" if ended.completion_tokens == room else "stop")


def test_a_prompt_that_is_too_long_fails_alone(llama: Path) -> None:
    async def both() -> list[Any]:
        target = target_of(llama)
        await target.open()
        try:
            asked = [QUESTIONS[0], Request("gift " * 300), NURSE, replace(NURSE, prompt="gift " * 300)]
            return await asyncio.gather(*map(target.ask, asked), return_exceptions=True)
        finally:
            await target.close()

    first, long, second, long_text = asyncio.run(both())
    assert isinstance(first, Response)
    assert isinstance(second, Response)
    for fault in (long, long_text):
        assert isinstance(fault, RequestFailed)
        assert "too many for the model's context of 256 tokens" in str(fault)


# Memory


@pytest.fixture
def few_objects() -> Iterator[None]:
    """Keep the search for garbage, which frees memory for the next try, off the objects of other tests."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
def test_a_batch_that_does_not_fit_is_halved_and_grows_again(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from pytest_fairness.targets.transformers import LanguageModel

    real, tried = LanguageModel.score, []

    def score(self: LanguageModel, requests: Sequence[Request]) -> Any:
        tried.append(len(requests))
        with self._memory_errors():
            if len(requests) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return real(self, requests)

    monkeypatch.setattr(LanguageModel, "score", score)
    asked = [replace(NURSE, continuation=f" {number}.") for number in range(9)]
    assert len({answer.text for answer in ask(target_of(llama), *asked)}) == 9
    assert tried == [9, 4, 2, 2, 2, 2, 1]


@pytest.mark.usefixtures("few_objects")
def test_a_request_that_does_not_fit_into_memory_fails(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_fairness.targets.transformers import LanguageModel

    def score(self: LanguageModel, requests: Sequence[Request]) -> Any:
        with self._memory_errors():
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(LanguageModel, "score", score)
    with pytest.raises(RequestFailed, match="one request does not fit into memory"):
        ask(target_of(llama), NURSE)


def test_batch_size_is_halved_and_doubled() -> None:
    size = BatchSize()
    assert size.next_size(1000) == 1000
    size.failed(9)
    assert (size.limit, size.next_size(3), size.next_size(7)) == (4, 3, 4)
    for _ in range(GROW_AFTER):
        size.succeeded(3)
    assert size.limit == 4, "smaller batches prove nothing"
    for _ in range(GROW_AFTER):
        size.succeeded(4)
    assert size.limit == 8
    size.failed(1)
    assert size.limit == 1


# With the engine, and under xdist


def test_generation_stops_when_nobody_waits_for_it(llama: Path, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, device="cpu", timeout=60.0, give_up=60.0)
    with engine_for(settings, open_target(f"transformers:{llama}", settings)) as engine:
        assert len(texts(engine.answers([*QUESTIONS, NURSE]))) == 7
        engine.plan([Request("Tell a long story.", trial=trial) for trial in range(40)])
    # The end of the block waits for what is in flight; it would take minutes were it not cut short.


def test_a_worker_gets_the_answers_of_the_process_with_the_model(llama: Path, tmp_path: Path) -> None:
    spec = f"transformers:{llama}"
    settings = settings_in(tmp_path, device="cpu", target=spec, timeout=60.0, give_up=60.0)
    expected = ask(open_target(spec, settings), *QUESTIONS, NURSE)
    served = serve(spec, settings)
    assert isinstance(served, TargetServer)
    with served:
        worker = open_target(spec, settings, served.address)
        assert worker.identity == open_target(spec, settings).identity
        with engine_for(settings, worker) as engine:
            assert texts(engine.answers([*QUESTIONS, NURSE])) == texts(expected)
        with pytest.raises(RequestFailed, match="too many for the model's context"):
            ask(open_target(spec, settings, served.address), Request("gift " * 300))
    with pytest.raises(TargetError, match=r"the process that serves the model .* has ended"):
        ask(open_target(spec, settings, served.address), NURSE)


def test_a_worker_gets_the_error_of_loading(llama: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(llama, tmp_path / "broken")
    next(broken.glob("*.safetensors")).write_bytes(b"no weights")
    spec = f"transformers:{broken}"
    settings = settings_in(tmp_path, device="cpu", target=spec)
    served = serve(spec, settings)
    assert served is not None
    with served, pytest.raises(TargetError, match="transformers:broken: the model cannot be loaded: "):
        ask(open_target(spec, settings, served.address), NURSE)


# Names, and what is wrong with them


def test_a_gguf_file_answers_like_the_model_it_was_made_of(llama: Path, tmp_path: Path) -> None:
    make_gguf(llama, tmp_path / "tiny.gguf")
    folder, file = (ask(target_of(path), *QUESTIONS, *TEXTS) for path in (llama, tmp_path))
    assert texts(file)[: len(QUESTIONS)] == texts(folder)[: len(QUESTIONS)]
    for one, other in zip(folder[len(QUESTIONS) :], file[len(QUESTIONS) :], strict=True):
        assert logs(one) == pytest.approx(logs(other), abs=1e-3)


def test_a_gguf_file_is_named_by_its_path_or_folder(llama: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    for written in ("tiny.gguf", ".", str(tmp_path)):
        target = open_target(f"transformers:{written}", settings_in(tmp_path))
        assert target.name == "transformers:tiny.gguf"
        assert "sha256" in target.identity
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    with pytest.raises(TargetError, match=r"contains several models. Name one of them: other.gguf, tiny.gguf"):
        open_target("transformers:.", settings_in(tmp_path))
    with pytest.raises(TargetError, match=r"transformers:tiny.gguf: the model cannot be loaded: "):
        ask(open_target("transformers:tiny.gguf", settings_in(tmp_path)), NURSE)


def test_folders_of_different_contents_are_different_targets(llama: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(llama, tmp_path / "llama")
    assert target_of(copy).identity == target_of(llama).identity
    (copy / "chat_template.jinja").write_text(CHAT_TEMPLATE.replace("user", "human") + " ")
    other = target_of(copy).identity
    assert other != target_of(llama).identity
    weights = next(copy.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\1\0")
    assert target_of(copy).identity not in {other, target_of(llama).identity}


@pytest.mark.parametrize(
    ("files", "written", "said"),
    [
        ((), "no/such/folder", "the file or folder .*no/such/folder does not exist"),
        ((), "none.gguf", "the file or folder .*none.gguf does not exist"),
        (("model.txt",), "model.txt", r"model.txt is not a .gguf file. Name the model's folder or a .gguf file"),
        (("m/readme.md",), "m", r"m contains no model: neither a config.json nor a .gguf file"),
        (("m/config.json",), "m", r"m contains no weights"),
        (("m/config.json", "m/pytorch_model.bin"), "m", "contains its weights as pickles, which can run code"),
    ],
)
def test_paths_without_a_model_are_explained(tmp_path: Path, files: Sequence[str], written: str, said: str) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("{}")
    with pytest.raises(TargetError, match=said):
        open_target(f"transformers:{written}", settings_in(tmp_path))
    with pytest.raises(TargetError, match="'transformers' names no model; write transformers:ID_OR_PATH"):
        open_target("transformers", settings_in(tmp_path))


def test_models_of_the_hub_are_identified_by_their_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    settings = settings_in(tmp_path / "elsewhere")
    assert open_target("transformers:some/model", settings).identity == "transformers:some/model main"
    with pytest.raises(TargetError, match=r"HF_HUB_OFFLINE forbids downloads. Run `hf download some/model`"):
        check_spec("transformers:some/model", settings)
    folder = tmp_path / "models--some--model"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc123")
    (folder / "snapshots" / "abc123").mkdir(parents=True)
    (folder / "snapshots" / "abc123" / "config.json").write_text("{}")
    check_spec("transformers:some/model", settings)
    assert open_target("transformers:some/model", settings).identity == "transformers:some/model abc123"
    assert open_target("transformers:some/model@abc123", settings).identity == "transformers:some/model abc123"
    assert open_target("transformers:some/model@v2", settings).identity == "transformers:some/model v2"
    assert open_target("transformers:gpt2", settings).identity == "transformers:gpt2 main"


def test_a_model_that_cannot_be_downloaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        TargetError,
        match=r"the model is not in the cache, and cannot be downloaded or loaded .*hf download no-such/model",
    ):
        ask(open_target("transformers:no-such/model", settings_in(tmp_path)), NURSE)


def test_an_unknown_device_is_named(llama: Path) -> None:
    target = open_target(f"transformers:{llama}", settings_in(llama, device="abacus"))
    with pytest.raises(TargetError, match=r"torch cannot use the device 'abacus' .*Name cpu, cuda, cuda:1 or mps"):
        ask(target, NURSE)


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_is_named_with_its_extra(llama: Path, package: str) -> None:
    program = f"""
import sys
from importlib.machinery import PathFinder
from pathlib import Path

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            return None
        return PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not PathFinder] + [Without()]
from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.targets import check_spec
try:
    check_spec("transformers:{llama.as_posix()}", RunSettings(root=Path()))
except TargetError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    said = f'transformers:llama needs the package {package}: pip install "pytest-fairness[transformers]"\n'
    assert result.stdout == said, result.stderr
