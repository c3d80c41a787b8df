"""A dry run asks what the first step would ask, and says where a run would learn nothing."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from vantage_trainer import demo
from vantage_trainer.arithmetic import generate
from vantage_trainer.data import Problem
from vantage_trainer.generation import Completion, Request
from vantage_trainer.jobs import dry_run
from vantage_trainer.jobs.credited import Graded, advantages, credited
from vantage_trainer.jobs.findings import Seen, findings
from vantage_trainer.jobs.tally import tally
from vantage_trainer.jobspec import DryRunSpec, JobFile
from vantage_trainer.presets import PRESETS
from vantage_trainer.progress import Progress
from vantage_trainer.recipes import demo_spec
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.rollout import Response, Sampler
from vantage_trainer.run import Run
from vantage_trainer.spec import Reward, RunSpec


def responses(*groups: str, finish: str = "stop", answer: str = "7") -> list[Response]:
    """Make groups of one-character answers: "77" is a group of two right ones; a dash is one that fails."""
    scorer, problem = Scorer(Reward()), Problem("1", "3+4=", [1], answer)
    return [
        Response(problem, group, index, Completion([1] * 4, [0.0] * 4, finish, 1), text, scorer.score(text, answer))
        for group, texts in enumerate(groups)
        for index, text in enumerate(texts)
    ]


def codes(found: list[Response], spec: RunSpec | None = None) -> dict[str, bool]:
    spec = spec or RunSpec(algorithm=PRESETS["grpo"].algorithm)
    graded = [Graded(r.group, r.score.reward, r.score.correct, 4, r.truncated) for r in found]
    learns = bool(advantages(credited(spec, graded)).any())
    told = findings(Seen(spec, found, learns))
    assert all(isinstance(one, dict) and str(one["sentence"]).endswith(".") for one in told)
    return {one["code"]: one["stops"] for one in told}  # type: ignore[index,call-overload,misc]


@pytest.mark.parametrize(
    ("groups", "code"), [(("7777", "7777"), "all_right"), (("1234", "5689"), "all_wrong"), (("77", "88"), "no_signal")]
)
def test_a_run_without_signal_is_told_that_it_would_learn_nothing(groups: tuple[str, ...], code: str) -> None:
    assert codes(responses(*groups))[code] is True


def test_answers_cut_at_the_limit_are_told_as_such_and_not_as_wrong() -> None:
    found = codes(responses("1234", "5678", finish="length"))
    assert found["all_truncated"] is True and "all_wrong" not in found


def test_a_reward_that_can_judge_nothing_is_told_with_its_cause() -> None:
    found = responses("1234", answer="seven")
    assert codes(found)["all_errored"] is True
    [told] = [one for one in findings(Seen(RunSpec(), found, learns=False)) if one["code"] == "all_errored"]  # type: ignore[index,call-overload]
    assert "'seven' is not a number" in str(told)
    assert tally(found)["causes"] == [["numeric: the expected answer 'seven' is not a number", 4]]


def test_groups_of_right_and_wrong_answers_give_no_warning() -> None:
    assert codes(responses("7177", "7281")) == {}


def test_what_an_algorithm_still_learns_from_equal_verdicts_is_not_called_nothing() -> None:
    without_baseline = RunSpec.model_validate({"algorithm": {"baseline": {"kind": "none"}}})
    found = codes(responses("7777"), without_baseline)
    assert found == {"all_alike": False, "same_answers": False}


def test_the_shares_of_groups_add_up_and_lengths_and_times_are_told() -> None:
    told: dict[str, Any] = tally(responses("7177", "8888", "7777"))
    thirds = {"mixed": 1 / 3, "all_wrong": 1 / 3, "all_correct": 1 / 3, "truncated": 0, "errored": 0, "stale": 0}
    assert told["signal"] == pytest.approx(thirds)
    assert (told["num_correct"], told["num_responses"], told["num_groups"]) == (7, 12, 3)
    assert told["lengths"] == {"mean": 4.0, "median": 4, "p90": 4, "max": 4, "num_cut": 0}
    mean, longest = told["seconds"]["numeric"]
    assert 0 < mean <= longest < 1


@dataclass
class Listening:
    """An engine that remembers what it was asked."""

    asked: list[Request] = field(default_factory=list)

    def generate(self, requests: list[Request]) -> list[Completion]:
        self.asked += requests
        return [Completion([1], [0.0], "stop", 1) for _ in requests]


def test_it_asks_the_prompts_of_the_first_step_with_the_seeds_of_the_first_step() -> None:
    from vantage_trainer import loop

    spec = demo_spec(seed=5)
    problems = [Problem(str(n), "", [n], str(n)) for n in range(40)]
    letters = SimpleNamespace(decode=lambda ids, **_: "1")
    engines = Listening(), Listening()
    samplers = [Sampler(engine, letters, Scorer(Reward()), spec.rollout) for engine in engines]  # type: ignore[arg-type]
    dry_run.first_step(spec, dry_run.Ready(problems, samplers[0], "own"), 3)
    parts: Any = {"policy": None, "generator": None, "tokenizer": letters, "heldout": {}}
    parts |= {"imitated": [], "journal": None, "stop": None}
    run = Run(folder=Path(), spec=spec, sampler=samplers[1], problems=problems, progress=Progress(), **parts)
    loop._batch(run, loop.Step(1, 0), spec.rollout.prompts_per_step)
    assert len(engines[0].asked) == 3 * spec.rollout.group_size
    assert engines[0].asked == engines[1].asked[: len(engines[0].asked)]


@pytest.mark.engine
def test_a_model_is_tried_as_it_is_and_one_that_only_guesses_is_said_to_learn_nothing(tmp_path: Path) -> None:
    run = demo_spec(seed=1)
    run.rollout.group_size = 4
    spec = DryRunSpec(run=run, prompts=2, warm_start=False)
    (tmp_path / "data").mkdir()
    demo.write_rows(tmp_path / "data" / "train.jsonl", generate(8, 1))
    (tmp_path / "job.json").write_text(JobFile(spec=spec).model_dump_json())
    command = [sys.executable, "-m", "vantage_trainer.job", str(tmp_path), "--attempt", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    place = tmp_path / "attempts" / "1"
    assert done.returncode == 0, (place / "trainer.log").read_text()[-3000:]
    events = [json.loads(line) for line in (place / "journal" / "events.jsonl").read_text().splitlines()]
    [told] = [event["data"] for event in events if event["kind"] == "result"]
    assert told["weights"] == "before_warm_start" and told["num_responses"] == 8
    assert any(one["stops"] for one in told["findings"])
    assert len((place / "journal" / "samples.jsonl").read_text().splitlines()) == 8
    assert not (tmp_path / "checkpoints").exists()
