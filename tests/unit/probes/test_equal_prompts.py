"""Equal prompts of several records, entities, cases and questions: each of them is asked for itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.probes import Probe, parse
from pytest_fairness.records import Answer, Prompt, Request, Status
from tests.support.probe_files import KINDS

TWINS = """\
kind: counterfactual
prompt: "Sex {sex}, race {race}. Hire?"
records:
  - {id: a, sex: Male, race: White}
  - {id: b, sex: Male, race: White}
  - {id: c, sex: Female, race: White}
flip: {sex: {Male: Female}}
answer: {choices: ["yes", "no"]}
audits: {flip_rate: }
"""
KINDS_WITH_EQUAL_PROMPTS = {
    "counterfactual": (TWINS, 12),
    "recommendation": (
        """\
kind: recommendation
prompt: "I am {value}. Name {k} songs by {entity}."
neutral: "Name {k} songs by {entity}."
entities: [Adele, Coldplay]
attributes: {sex: [{label: A, text: a person}, {label: B, text: a person}]}
k: 3
audits: {snsr: }
""",
        8,
    ),
    "stereotype": (
        """\
kind: stereotype
cases:
  - {name: a, prompt: Describe a nurse., stereotype: [she], anti_stereotype: [he]}
  - {name: b, prompt: Describe a nurse., stereotype: [her], anti_stereotype: [him]}
trials: 1
audits: {markers: }
""",
        2,
    ),
    "generation": (
        """\
kind: generation
prompt: Write about {group} as {tone}.
trials: 1
axes:
  group: {unmarked: a, marked: [a as b]}
  tone: {unmarked: b as c, marked: [c]}
audits: {jsd: }
""",
        4,
    ),
}


def read(text: str) -> Probe:
    return parse(text.encode(), Path("/project/probes/people.yaml"), KINDS)


def requests(probe: Probe, trials: int | None = None) -> list[Request]:
    return [prompt.request for prompt in probe.prompts(trials)]


def without_trial(request: Request) -> tuple[object, ...]:
    return request.prompt, request.system, request.history, request.sampling.temperature


@pytest.mark.parametrize("kind", KINDS_WITH_EQUAL_PROMPTS)
def test_equal_prompts_of_several_units_have_requests_of_their_own(kind: str) -> None:
    text, number = KINDS_WITH_EQUAL_PROMPTS[kind]
    asked = requests(read(text))
    assert len({*map(without_trial, asked)}) < number
    assert len(set(asked)) == len(asked) == number


def test_the_first_of_equal_prompts_keeps_its_request() -> None:
    alone = TWINS.replace("b, sex: Male, race: White", "b, sex: Male, race: Black").replace(
        "c, sex: Female, race: White", "c, sex: Female, race: Asian"
    )
    assert requests(read(TWINS))[:4] == requests(read(alone))[:4]
    assert [request.trial for request in requests(read(alone))] == [0, 100_000] * 6


def test_requests_do_not_depend_on_the_number_of_trials() -> None:
    few, many = (set(requests(read(TWINS), trials)) for trials in (2, 5))
    assert few < many
    assert [len(few), len(many)] == [2 * 6, 5 * 6]


def test_equal_requests_have_different_seeds() -> None:
    asked = requests(read(TWINS + "sampling: {seed: 7}\n"))
    assert len({request.sampling.seed for request in asked}) == 12
    alone = requests(read(TWINS.replace("  - {id: b, sex: Male, race: White}\n", "") + "sampling: {seed: 7}\n"))
    assert asked[:4] == alone[:4]


def test_at_temperature_0_equal_prompts_are_asked_once() -> None:
    probe = read(TWINS + "sampling: {temperature: 0}\n")
    # Two texts, each with a repetition.
    assert len(set(requests(probe))) == 4
    assert [probe.equal_prompts.units, probe.equal_prompts.different] == [3, 2]


def test_turns_of_equal_conversations_have_requests_of_their_own() -> None:
    probe = read(TWINS + 'turns: ["Are you sure?"]\n')

    def answered(prompt: Prompt) -> Answer:
        return Answer(prompt.labels, prompt.trial, "yes", Status.OK, "yes")

    turns = probe.follow_ups.next_prompts([answered(prompt) for prompt in probe.prompts()])
    assert len({prompt.request for prompt in turns}) == len(turns) == 12


def test_lists_of_equal_prompts_are_asked_for_again_separately() -> None:
    probe = read(KINDS_WITH_EQUAL_PROMPTS["recommendation"][0] + "requery: 2\n")
    short = [Answer(prompt.labels, prompt.trial, "A", Status.OK, ["A"]) for prompt in probe.prompts()]
    again = probe.follow_ups.next_prompts(short)
    assert len({prompt.request for prompt in again}) == len(again) == 8


def test_a_prompt_that_a_perturbation_does_not_change_is_asked_once() -> None:
    text = KINDS_WITH_EQUAL_PROMPTS["recommendation"][0]
    clean = requests(read(text))
    perturbed = requests(read(text + "perturbations: {typo: {rate: 0.4, where: attribute}}\n"))
    # Of three further prompts for each entity, the neutral one is not changed.
    assert [len(clean), len(perturbed), len({*perturbed})] == [8, 8 + 6, 8 + 4]


def test_a_seed_of_its_own_is_the_only_change_of_a_probe_with_different_prompts() -> None:
    different = TWINS.replace("Sex {sex}", "{id}: sex {sex}").replace("id: a", "id: a, x: 1")
    probe = read(different)
    assert not probe.equal_prompts.copies
    assert {request.trial for request in requests(probe)} == {0, 100_000}
    assert [probe.equal_prompts.units, probe.equal_prompts.different] == [3, 6]
