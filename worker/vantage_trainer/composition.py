"""An algorithm: one choice per part. Names and meaning are those of the formula sheets; no torch here."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Positive = Annotated[FiniteFloat, Field(gt=0)]
NonNegative = Annotated[FiniteFloat, Field(ge=0)]
Fraction = Annotated[FiniteFloat, Field(ge=0, le=1)]
Limit = Literal["rollout.response_limit"] | Annotated[int, Field(gt=0)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NoBaseline(Part):
    kind: Literal["none"] = "none"


class BatchMean(Part):
    kind: Literal["batch_mean"] = "batch_mean"


class Ema(Part):
    kind: Literal["ema"] = "ema"
    momentum: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.9


class CriticGae(Part):
    kind: Literal["critic_gae"] = "critic_gae"
    gamma: Fraction = 1.0
    lam: Fraction = 0.95
    value_clip: Positive | None = 0.2
    value_coef: NonNegative = 0.1


class GroupMean(Part):
    kind: Literal["group_mean"] = "group_mean"


class GroupLeaveOneOut(Part):
    kind: Literal["group_leave_one_out"] = "group_leave_one_out"


Baseline = Annotated[
    NoBaseline | BatchMean | Ema | CriticGae | GroupMean | GroupLeaveOneOut, Field(discriminator="kind")
]


class Deviation(Part):
    std_ddof: Literal[0, 1] = 1
    std_eps: NonNegative = 1e-6


class NoScale(Part):
    kind: Literal["none"] = "none"


class GroupStd(Deviation):
    kind: Literal["group_std"] = "group_std"


class BatchStd(Deviation):
    kind: Literal["batch_std"] = "batch_std"


class BatchWhiten(Deviation):
    kind: Literal["batch_whiten"] = "batch_whiten"


class TokenWhiten(Part):
    kind: Literal["token_whiten"] = "token_whiten"


class GroupMeanReward(Part):
    kind: Literal["group_mean_reward"] = "group_mean_reward"
    zero_success: Literal["zero", "keep_minus_one"] = "zero"


Scale = Annotated[
    NoScale | GroupStd | BatchStd | BatchWhiten | TokenWhiten | GroupMeanReward, Field(discriminator="kind")
]


class Ratio(Part):
    level: Literal["none", "token", "sequence_geometric", "sequence_product"] = "token"
    denominator: Literal["old", "behaviour"] = "old"


class NoTrustRegion(Part):
    kind: Literal["none"] = "none"


class Clip(Part):
    kind: Literal["clip"] = "clip"
    low: Annotated[FiniteFloat, Field(gt=0, le=1)] = 0.2
    high: Positive = 0.2
    dual: Annotated[FiniteFloat, Field(gt=1)] | None = None


class Truncate(Part):
    kind: Literal["truncate"] = "truncate"
    cap: Positive = 5.0
    floor: NonNegative = 0.0


class Divergence(Part):
    kind: Literal["divergence"] = "divergence"
    measure: Literal["tv", "kl"] = "tv"
    form: Literal["binary", "topk"] = "binary"
    low: Positive = 0.15
    high: Positive = 0.15
    k: Annotated[int, Field(ge=1)] = 20
    cap: Positive | None = None


TrustRegion = Annotated[NoTrustRegion | Clip | Truncate | Divergence, Field(discriminator="kind")]


class TokenMean(Part):
    kind: Literal["token_mean"] = "token_mean"


class SequenceMeanTokenMean(Part):
    kind: Literal["sequence_mean_token_mean"] = "sequence_mean_token_mean"


class SequenceMeanTokenSum(Part):
    kind: Literal["sequence_mean_token_sum"] = "sequence_mean_token_sum"


class SequenceMeanTokenSumNorm(Part):
    kind: Literal["sequence_mean_token_sum_norm"] = "sequence_mean_token_sum_norm"
    length: Limit = "rollout.response_limit"


class PromptMean(Part):
    kind: Literal["prompt_mean"] = "prompt_mean"


class DeltaL(Part):
    kind: Literal["delta_l"] = "delta_l"
    alpha: NonNegative = 0.75
    length: Limit = "rollout.response_limit"
    scope: Literal["step", "rollout_batch"] = "step"


Aggregation = Annotated[
    TokenMean | SequenceMeanTokenMean | SequenceMeanTokenSum | SequenceMeanTokenSumNorm | PromptMean | DeltaL,
    Field(discriminator="kind"),
]


class NoCorrection(Part):
    kind: Literal["none"] = "none"


class ImportanceCorrection(Part):
    level: Literal["token", "sequence", "geometric"] = "token"
    low: NonNegative | None = None
    high: Positive | None = 2.0


class TruncateCorrection(ImportanceCorrection):
    kind: Literal["truncate"] = "truncate"


class MaskCorrection(ImportanceCorrection):
    kind: Literal["mask"] = "mask"


class RejectCorrection(ImportanceCorrection):
    kind: Literal["reject"] = "reject"


Correction = Annotated[
    NoCorrection | TruncateCorrection | MaskCorrection | RejectCorrection, Field(discriminator="kind")
]


class Kl(Part):
    where: Literal["loss", "reward"] = "loss"
    estimator: Literal["k1", "k2", "k3", "ratio_k3"] = "k3"
    coef: NonNegative = 0.04
    level: Literal["token", "sequence"] = "token"


class Entropy(Part):
    coef: FiniteFloat = 0.0


class Regularizer(Part):
    kl: Kl | None = None
    entropy: Entropy | None = None


class DynamicSampling(Part):
    max_batches: Annotated[int, Field(ge=1)] = 10


class NoPositiveResampling(Part):
    threshold: Fraction = 0.9


class Overlong(Part):
    limit: Limit = "rollout.response_limit"
    buffer: Annotated[int, Field(gt=0)] | None = None
    buffer_fraction: Annotated[FiniteFloat, Field(gt=0, le=1)] = 0.2
    factor: NonNegative = 1.0


class Interruption(Part):
    min_fraction: Fraction = 0.83
    max_fraction: Fraction = 1.0
    of: Literal["rollout.thinking_budget"] = "rollout.thinking_budget"


class Sampling(Part):
    zero_variance_filter: bool = False
    dynamic_sampling: DynamicSampling | None = None
    no_positive_resampling: NoPositiveResampling | None = None
    overlong: Overlong | None = None
    interruption: Interruption | None = None
    truncated: Literal["keep", "mask", "zero_reward"] = "keep"


class Algorithm(Part):
    """A composition: what a preset is, and what every run stores in full."""

    preset: str | None = Field(default=None, description="The preset it came from; says nothing about what it computes")
    baseline: Baseline = NoBaseline()
    scale: Scale = NoScale()
    ratio: Ratio = Ratio(level="none")
    trust_region: TrustRegion = NoTrustRegion()
    aggregation: Aggregation = TokenMean()
    correction: Correction = NoCorrection()
    regularizer: Regularizer = Regularizer()
    sampling: Sampling = Sampling()
