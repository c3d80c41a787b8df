"""Ready-made runs with the data they need; no torch here."""

from dataclasses import asdict, dataclass

from vantage_trainer.arithmetic import Row, generate
from vantage_trainer.presets import PRESETS
from vantage_trainer.spec import (
    Budget,
    Checkpoint,
    Data,
    Evaluation,
    EvaluationSet,
    Model,
    Optimization,
    Reference,
    Reward,
    RewardPart,
    Rollout,
    RunSpec,
    WarmStart,
)


@dataclass(frozen=True)
class Sums:
    """Parameters of a generated arithmetic dataset, by the name it has in a team."""

    name: str
    num: int
    seed: int
    terms: int
    digits: int
    heldout: bool
    estimates: float = 0.0

    def rows(self) -> list[Row]:
        return generate(
            self.num, self.seed, terms=self.terms, digits=self.digits, estimates=self.estimates, heldout=self.heldout
        )

    def parameters(self) -> dict[str, int | float | bool]:
        """Everything but the name, as the generator's form has it."""
        return {name: value for name, value in asdict(self).items() if name != "name"}


DEMO_TRAIN = Sums("sums", num=4096, seed=1, terms=4, digits=1, heldout=False, estimates=0.5)
DEMO_HELDOUT = Sums("sums-heldout", num=512, seed=2, terms=4, digits=1, heldout=True)


def demo_spec(seed: int = 0) -> RunSpec:
    """The demo: a short warm start on written sums, then GRPO, on two cores within four minutes."""
    return RunSpec(
        model=Model(source="tiny", name="tiny"),
        data=Data(train=f"{DEMO_TRAIN.name}@1", prompt_limit=32),
        reward=Reward(parts=[RewardPart(kind="numeric")]),
        warm_start=WarmStart(steps=700, batch=64, learning_rate=2e-3),
        algorithm=PRESETS["grpo"].algorithm,
        rollout=Rollout(prompts_per_step=32, group_size=8, response_limit=24),
        optimization=Optimization(learning_rate=5e-5, betas=(0.9, 0.95), minibatches=2),
        reference=Reference(source="start"),
        evaluation=Evaluation(sets=_heldout(), every_steps=4),
        checkpoint=Checkpoint(every_steps=8),
        budget=Budget(steps=40),
        seed=seed,
    )


def _heldout() -> list[EvaluationSet]:
    """One sample of every held-out problem for pass@1, and eight of some of them for pass@k."""
    dataset = f"{DEMO_HELDOUT.name}@1"
    return [
        EvaluationSet(name="heldout", dataset=dataset, n=1, k=[1]),
        EvaluationSet(name="heldout-8", dataset=dataset, n=8, k=[1, 2, 4, 8], limit=64),
    ]
