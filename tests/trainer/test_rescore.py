"""Stored completions under another reward: what changes, and nothing else; nothing unscorable becomes a 0."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from vantage_trainer import metrics
from vantage_trainer.failure import Failure
from vantage_trainer.jobs import rescore
from vantage_trainer.jobs.credited import Graded, credited
from vantage_trainer.jobs.regrading import Regrader, Stored
from vantage_trainer.jobspec import RescoreSpec
from vantage_trainer.journal import Journal
from vantage_trainer.presets import PRESETS
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.spec import Reward, RewardPart, RunSpec
from vantage_trainer.stopping import Stop

MARKED = Reward(parts=[RewardPart(parameters={"marker": "####"})])
TEXTS = ("it is 7", "#### 7 for 9 people", "8", "so 9", "7", "#### 8")


def spec_of(preset: str = "grpo") -> RunSpec:
    return RunSpec(algorithm=PRESETS[preset].algorithm)


def stored(step: int, texts: tuple[str, ...] = TEXTS, spec: RunSpec | None = None, **more: Any) -> list[Stored]:
    """Store a step of groups of two, graded as the run's own reward grades them."""
    spec = spec or spec_of()
    scores = [Scorer(spec.reward).score(text, "7") for text in texts]
    graded = [Graded(n // 2, score.reward, score.correct, 5, False) for n, score in enumerate(scores)]
    rewards = credited(spec, graded).reward_B.tolist()
    return [
        Stored(
            **{
                "id": 100 * step + n,
                "step": step,
                "group": n // 2,
                "answer": "7",
                "text": text,
                "num_tokens": 5,
                "reward": reward,
                "parts": score.parts,
                "correct": score.correct,
                "finish": "stop",
            }
            | more
        )
        for n, (text, score, reward) in enumerate(zip(texts, scores, rewards, strict=True))
    ]


def test_the_same_reward_changes_nothing() -> None:
    found = Regrader(spec_of(), Reward()).step(1, stored(1))
    assert not found.changes
    figures = found.figures()
    assert figures["reward_before"] == figures["reward_after"] == pytest.approx(2 / 6)
    assert not any(value for name, value in figures.items() if "_" in name and name.split("_")[0] in ("sign", "signal"))


def test_verdicts_that_flip_and_advantages_that_turn_are_counted() -> None:
    found = Regrader(spec_of(), MARKED).step(1, stored(1))
    assert found.sums["right_to_wrong"] == 2 and found.sums["wrong_to_right"] == 1
    assert found.sums["sign_flips"] == 2 and found.sums["signal_lost"] == 2 and found.sums["signal_gained"] == 0
    assert {change.id - 100 for change in found.changes} == {0, 1, 4}
    assert found.metrics()["rescore/right_to_wrong"] == pytest.approx(2 / 6)
    assert found.sentence() == (
        "3 of 6 completions would change their verdict; the mean reward goes from 0.333 to 0.167."
    )


def test_what_cannot_be_scored_leaves_the_means_and_is_counted() -> None:
    found = Regrader(spec_of(), Reward()).step(1, stored(1, answer="seven"))
    figures = found.figures()
    assert "reward_after" not in figures and figures["unscored_after"] == 6
    assert all(change.after.reward is None and "not a number" in change.cause for change in found.changes)


@pytest.mark.parametrize(
    ("more", "cause"),
    [({"answer": None}, "not in the training dataset"), ({"finish": "error"}, "the generator gave no answer")],
)
def test_a_completion_without_an_answer_to_compare_is_not_judged(more: dict[str, Any], cause: str) -> None:
    found = Regrader(spec_of(), Reward()).step(1, stored(1, **more))
    assert all(cause in change.cause for change in found.changes) and len(found.changes) == 6


def test_a_kl_in_the_reward_is_paid_by_the_other_reward_too() -> None:
    kl = {"where": "reward", "estimator": "k1", "coef": 0.5}
    spec = RunSpec.model_validate({"algorithm": {"baseline": {"kind": "group_mean"}, "regularizer": {"kl": kl}}})
    plain = stored(1, ("7", "8"), spec_of())
    samples = [
        Stored(**{**vars(one), "reward": float(one.reward or 0) - paid})
        for one, paid in zip(plain, (0.1, 0.4), strict=True)
    ]
    same = Regrader(spec, Reward())
    assert same._kl(samples, [1.0, 0.0]) == pytest.approx([0.2, 0.8])
    [before, after] = [
        [pair[place].advantage for pair in pairs] for pairs in [same_pairs(spec, samples)] for place in (0, 1)
    ]
    assert before == after and before[0] == pytest.approx(0.65)


def same_pairs(spec: RunSpec, samples: list[Stored]) -> list[tuple[Any, Any]]:
    regrader = Regrader(spec, Reward())
    raw = [regrader._raw(sample) for sample in samples]
    kl = regrader._kl(samples, raw)
    told = [regrader._credit(when, 1, samples, raw, [True, False], kl) for when in ("before", "after")]
    return list(zip(*told, strict=True))


def test_a_moving_average_remembers_the_steps_before() -> None:
    spec = RunSpec.model_validate({"algorithm": {"baseline": {"kind": "ema", "momentum": 0.5}}})
    regrader = Regrader(spec, Reward())
    regrader.step(1, stored(1, ("7", "7")))
    assert regrader.ema == {"before": 0.5, "after": 0.5}


def job_in(folder: Path, samples: list[Stored], reward: Reward) -> Any:
    (folder / "data").mkdir()
    lines = (json.dumps(vars(sample)) + "\n" for sample in samples)
    (folder / "data" / "samples.jsonl").write_text("".join(lines))
    journal = Journal(folder / "journal")

    def result(content: dict[str, Any]) -> None:
        journal.event(0, "result", content)

    spec = RescoreSpec(run=spec_of(), reward=reward)
    return SimpleNamespace(folder=folder, spec=spec, journal=journal, stop=Stop(folder / "stop"), result=result)


def test_the_job_tells_every_step_and_the_largest_changes(tmp_path: Path) -> None:
    odd = ("\ud800 \x00 7", "8", "<b>7</b>", "9", "7", "8")
    job = job_in(tmp_path, stored(1) + stored(4, odd), MARKED)
    assert rescore.run(job).startswith("6 of 12 completions would change their verdict")
    rows = [json.loads(line) for line in (tmp_path / "journal" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 4]
    assert all(metrics.find(name) for row in rows for name in row["values"])
    [event] = [
        told["data"]
        for line in (tmp_path / "journal" / "events.jsonl").read_text().splitlines()
        if (told := json.loads(line))["kind"] == "result"
    ]
    assert event["num"] == 12 and len(event["changes"]) == 6
    assert event["changes"][0]["before"]["correct"] is not event["changes"][0]["after"]["correct"]


def test_a_run_without_completions_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="stored no completion yet"):
        rescore.run(job_in(tmp_path, [], MARKED))
