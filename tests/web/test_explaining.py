"""What an algorithm's page asks for while it is edited: formula, curves, and sentences beside the fields."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.test import Client
from vantage.algorithms import explaining
from vantage.algorithms.charts import figures
from vantage.algorithms.helper import SENTENCES, Helper, Reply, State
from vantage.algorithms.store import save
from vantage.teams.models import User
from vantage_trainer.composition import Algorithm
from vantage_trainer.curves import curves
from vantage_trainer.presets import PRESETS

Clients = Callable[[User], Client]
GRPO = PRESETS["grpo"].algorithm
ADDRESS = "/algorithms/explain/"


class Beside(Helper):
    """Computes in this process: no other one is started."""

    def warm(self) -> None:
        pass

    def ask(self, question: Mapping[str, Any], patience: float = 0) -> Reply:
        composition = Algorithm.model_validate(question["algorithm"])
        return Reply(State.ANSWERED, curves(composition, question["group_size"], question["response_limit"]))


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "HELPER", Beside())


def test_a_form_gets_the_formula_and_the_curves_of_what_it_holds(people: Any, client_of: Clients) -> None:
    posted = {"trust_region.kind": "clip", "trust_region:clip.high": "0.37", "group_size": "4", "limit": "128"}
    answer = client_of(people.viewer).post(f"{ADDRESS}?from=dapo", posted).json()
    assert "<mn>1.37</mn>" in answer["formula"]
    assert answer["errors"] == answer["notes"] == {}
    line = answer["figures"]["weight"]["data"][0]
    assert max(y for y in line["y"]) == pytest.approx(1.37, abs=0.01)
    assert answer["figures"]["advantage"]["data"][0]["x"] == [0, 0.25, 0.5, 0.75, 1]
    assert max(answer["figures"]["coefficient"]["data"][0]["x"]) == 128


def test_a_form_that_holds_no_algorithm_gets_sentences_and_no_curves(people: Any, client_of: Clients) -> None:
    client = client_of(people.member)
    wrong = client.post(f"{ADDRESS}?from=grpo", {"trust_region:clip.low": "7"}).json()
    assert "must be at most 1" in wrong["errors"]["f-trust_region-clip-low"][0]
    assert "figures" not in wrong and "formula" not in wrong
    twice = client.post(f"{ADDRESS}?from=grpo", {"ratio.denominator": "behaviour", "correction.kind": "mask"}).json()
    assert "already holds the correction" in twice["errors"]["f-correction"][0]


@pytest.mark.parametrize(
    ("start", "posted", "field", "sentence"),
    [
        ("grpo", {"regularizer.kl.coef": "0"}, "f-regularizer-kl-coef", "A weight of 0 turns this off."),
        ("rloo", {"ratio.denominator": "behaviour"}, "f-ratio-denominator", "its denominator has no effect"),
        ("grpo", {"trust_region:clip.dual": "1.1"}, "f-trust_region-clip-dual", "lies inside the band"),
    ],
)
def test_an_option_without_effect_is_pointed_out_beside_it(
    people: Any, client_of: Clients, start: str, posted: dict[str, str], field: str, sentence: str
) -> None:
    answer = client_of(people.member).post(f"{ADDRESS}?from={start}", posted).json()
    assert sentence in answer["notes"][field][0]
    assert answer["figures"]


@pytest.mark.parametrize("name", list(PRESETS))
def test_no_preset_has_an_option_without_effect(name: str) -> None:
    assert explaining.notes(PRESETS[name].algorithm) == {}


def test_two_algorithms_are_drawn_over_each_other_and_their_differences_marked(people: Any, client_of: Clients) -> None:
    answer = client_of(people.viewer).get(ADDRESS, {"of": ["grpo", "dr_grpo"]}).json()
    names = [trace["meta"]["label"] for trace in answer["figures"]["advantage"]["data"]]
    assert names[0] == "GRPO: right answer" and names[3] == "Dr. GRPO: right answer"
    assert answer["formula"].count('class="other"') == 5
    assert answer["other"].count('class="other"') == 3
    same = client_of(people.viewer).get(ADDRESS, {"of": ["grpo", "grpo"]}).json()
    assert 'class="other"' not in same["formula"] + same["other"]


def test_an_own_version_is_explained_to_its_team_alone(people: Any, client_of: Clients) -> None:
    save(people.team, people.member, "mine", GRPO, "")
    assert "formula" in client_of(people.viewer).get(ADDRESS, {"of": "mine@1"}).json()
    assert client_of(people.outsider).get(ADDRESS, {"of": "mine@1"}).json() == {}


def test_odd_sizes_are_the_defaults(people: Any, client_of: Clients) -> None:
    client = client_of(people.viewer)
    for group, limit in (("0", "-1"), ("1", "x"), ("9" * 50, "9" * 50), ("²", "")):
        answer = client.get(ADDRESS, {"of": "grpo", "group_size": group, "limit": limit}).json()
        assert len(answer["figures"]["advantage"]["data"][0]["x"]) == 9


def test_while_the_helper_starts_the_formula_is_there_and_the_page_says_so(
    people: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Reply(State.STARTING, sentence=SENTENCES[State.STARTING])
    monkeypatch.setattr(Beside, "ask", lambda *_, **__: waiting)
    answer = client_of(people.viewer).get(ADDRESS, {"of": "grpo"}).json()
    assert answer["figures"] is None and answer["state"] == "starting"
    assert "PyTorch is loading" in answer["sentence"] and "<mn>0.8</mn>" in answer["formula"]


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_chart_has_a_table_with_a_column_for_each_line(name: str) -> None:
    for figure in figures([(name, curves(PRESETS[name].algorithm, 8, 64))]).values():
        assert len(figure["table"]["head"]) == len(figure["data"]) + 1
        assert all(len(row) == len(figure["table"]["head"]) for row in figure["table"]["rows"])
        assert 2 <= len(figure["table"]["rows"]) <= 200


def test_a_narrow_trust_region_is_drawn_enlarged() -> None:
    low, high = figures([("GSPO", curves(PRESETS["gspo"].algorithm, 8, 64))])["weight"]["layout"]["xaxis"]["range"]
    assert 0.998 < low < 0.9997 and 1.0004 < high < 1.003
    wide = figures([("GRPO", curves(GRPO, 8, 64))])["weight"]["layout"]["xaxis"]["range"]
    assert wide == [0, 3]
