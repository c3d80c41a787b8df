"""The named algorithms: each a composition and what to know about it. No torch here.

Every preset computes exactly the formula of its sheet; where that is not the paper's own form, `differs` says so.
"""

from dataclasses import dataclass, replace

from vantage_trainer import composition as parts


@dataclass(frozen=True)
class Preset:
    """A named composition: `source` is the paper, `defaults` its values, `differs` where published code departs."""

    name: str
    title: str
    source: str
    algorithm: parts.Algorithm
    defaults: str
    differs: str


GROUP_STD = parts.GroupStd(std_ddof=1, std_eps=1e-6)
NO_RATIO = parts.Ratio(level="none")
OLD_TOKEN = parts.Ratio(level="token")
BEHAVIOUR_TOKEN = parts.Ratio(level="token", denominator="behaviour")
PPO_CLIP, HIGHER_CLIP = parts.Clip(low=0.2, high=0.2), parts.Clip(low=0.2, high=0.28)
CAP = parts.Truncate(cap=5.0, floor=0.0)
RESAMPLED = parts.Sampling(dynamic_sampling=parts.DynamicSampling(max_batches=10))
DAPO_SAMPLING = parts.Sampling(
    dynamic_sampling=parts.DynamicSampling(max_batches=10), overlong=parts.Overlong(buffer_fraction=0.2, factor=1.0)
)
CAPPED_CORRECTION = parts.TruncateCorrection(level="token", high=2.0)

ALL = (
    Preset(
        "reinforce",
        "REINFORCE",
        "Williams 1992",
        parts.Algorithm(baseline=parts.BatchMean(), ratio=NO_RATIO, aggregation=parts.SequenceMeanTokenSum()),
        "The baseline is the mean reward of the batch, the response itself included; there is nothing to tune.",
        "The mean over the batch contains each response, which shortens the gradient by 1 - 1/B and keeps its "
        "direction. verl's reinforce_plus_plus whitens a discounted reward over all tokens instead.",
    ),
    Preset(
        "ppo",
        "PPO",
        "Schulman 2017 (arXiv:1707.06347), for language models Ouyang 2022 (arXiv:2203.02155)",
        parts.Algorithm(
            baseline=parts.CriticGae(gamma=1.0, lam=0.95, value_clip=0.2, value_coef=0.1),
            scale=parts.TokenWhiten(),
            ratio=OLD_TOKEN,
            trust_region=PPO_CLIP,
            aggregation=parts.TokenMean(),
            regularizer=parts.Regularizer(kl=parts.Kl(where="reward", estimator="k1", coef=0.05, level="token")),
        ),
        "Values of TRL's PPO: lambda 0.95, clip 0.2, value clip 0.2, value weight 0.1, KL 0.05, usually four epochs.",
        "TRL whitens advantages per rank and does not skip masked tokens; verl turns the dual clip on by default. "
        "Here advantages are whitened over all trained tokens of the step.",
    ),
    Preset(
        "grpo",
        "GRPO",
        "Shao 2024, DeepSeekMath (arXiv:2402.03300)",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=OLD_TOKEN,
            trust_region=PPO_CLIP,
            aggregation=parts.SequenceMeanTokenMean(),
            regularizer=parts.Regularizer(kl=parts.Kl(where="loss", estimator="k3", coef=0.04)),
        ),
        "KL 0.04 and learning rate 1e-6 with groups of 64 in the paper; the clip of 0.2 is customary.",
        "TRL's default is a token mean over the batch without KL and 1e-4 beside the deviation; verl's is a token mean "
        "without KL. Here flat groups stay in the denominator, as in the paper.",
    ),
    Preset(
        "rloo",
        "RLOO",
        "Ahmadian 2024 (arXiv:2402.14740)",
        parts.Algorithm(
            baseline=parts.GroupLeaveOneOut(),
            ratio=NO_RATIO,
            aggregation=parts.SequenceMeanTokenSum(),
            regularizer=parts.Regularizer(kl=parts.Kl(where="reward", estimator="k1", coef=0.05, level="sequence")),
        ),
        "Two or four responses per prompt and KL between 0.03 and 0.1; TRL uses 0.05.",
        "TRL multiplies by a clipped product ratio of the sequence, verl by clipped token ratios; both equal this on "
        "the first step of a batch only.",
    ),
    Preset(
        "dr_grpo",
        "Dr. GRPO",
        "Liu 2025 (arXiv:2503.20783)",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            ratio=OLD_TOKEN,
            trust_region=PPO_CLIP,
            aggregation=parts.SequenceMeanTokenSumNorm(),
        ),
        "The constant length is the response limit, never the width of a batch; the authors train groups of 8.",
        "verl divides by the padded width and not by the number of responses; TRL normalises within each micro-batch.",
    ),
    Preset(
        "dapo",
        "DAPO (token mean)",
        "Yu 2025 (arXiv:2503.14476), as verl and TRL implement it",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=OLD_TOKEN,
            trust_region=HIGHER_CLIP,
            aggregation=parts.TokenMean(),
            sampling=DAPO_SAMPLING,
        ),
        "Clip 0.2 below and 0.28 above; the length penalty grows over the last fifth of the response limit.",
        "The paper's formula averages over each prompt's tokens first: that is dapo_paper. verl's length penalty keeps "
        "growing past the limit; here it stops at its full size.",
    ),
    Preset(
        "dapo_paper",
        "DAPO (as printed)",
        "Yu 2025 (arXiv:2503.14476), token mean per prompt",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=OLD_TOKEN,
            trust_region=HIGHER_CLIP,
            aggregation=parts.PromptMean(),
            sampling=DAPO_SAMPLING,
        ),
        "As dapo, with every prompt weighing the same.",
        "No widely used library offers this form: verl and TRL take the token mean over the batch, which is dapo.",
    ),
    Preset(
        "cispo",
        "CISPO (token mean)",
        "MiniMax-M1 2025 (arXiv:2506.13585), as verl and TRL implement it",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=OLD_TOKEN,
            trust_region=CAP,
            aggregation=parts.TokenMean(),
            sampling=RESAMPLED,
        ),
        "The cap of 5 is absolute and there is no floor; the paper does not state its own cap.",
        "verl caps at 1 + clip_ratio_high and keeps a floor unless clip_ratio_low is 1; the paper averages per prompt, "
        "which is cispo_paper.",
    ),
    Preset(
        "cispo_paper",
        "CISPO (as printed)",
        "MiniMax-M1 2025 (arXiv:2506.13585), per prompt",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=OLD_TOKEN,
            trust_region=CAP,
            aggregation=parts.PromptMean(),
            sampling=RESAMPLED,
        ),
        "As cispo, with every prompt weighing the same.",
        "verl and TRL take the token mean over the batch, which is cispo.",
    ),
    Preset(
        "gspo",
        "GSPO",
        "Zheng 2025 (arXiv:2507.18071)",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=parts.Ratio(level="sequence_geometric"),
            trust_region=parts.Clip(low=3e-4, high=4e-4),
            aggregation=parts.SequenceMeanTokenMean(),
        ),
        "Clip 3e-4 and 4e-4 with four minibatches per batch; ScaleRL needed about ten times as much.",
        "verl computes the token form whatever aggregation is set; TRL must be told to use loss type grpo, otherwise "
        "the value of a sequence is summed over its tokens.",
    ),
    Preset(
        "maxrl",
        "MaxRL",
        "Tajwar 2026, maximum likelihood by reinforcement learning",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=parts.GroupMeanReward(zero_success="zero"),
            ratio=NO_RATIO,
            aggregation=parts.SequenceMeanTokenSum(),
        ),
        "Rewards of 0 and 1 only; groups of 16 to 128. Unbiased for the likelihood cut at order N - 1.",
        "The published code adds 1e-6 to the mean, takes a token mean and clips token ratios at 0.2; a second "
        "estimator of that name also divides by the deviation.",
    ),
    Preset(
        "dppo_tv",
        "DPPO (total variation)",
        "Qi 2026, the authors' example",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            ratio=BEHAVIOUR_TOKEN,
            trust_region=parts.Divergence(measure="tv", form="binary", low=0.15, high=0.15),
            aggregation=parts.SequenceMeanTokenSumNorm(),
        ),
        "Threshold 0.15 on both sides, measured from the generator's probabilities; no cap on the ratio.",
        "The method leaves credit and aggregation open: the authors' example takes those of Dr. GRPO, TRL the token "
        "mean with group deviation and a cap of 20.",
    ),
    Preset(
        "dppo_kl",
        "DPPO (binary KL)",
        "Qi 2026, with KL as the measure",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            ratio=BEHAVIOUR_TOKEN,
            trust_region=parts.Divergence(measure="kl", form="binary", low=0.05, high=0.05),
            aggregation=parts.SequenceMeanTokenSumNorm(),
        ),
        "Threshold 0.05 on both sides, from the generator's to the current probability.",
        "As dppo_tv.",
    ),
    Preset(
        "scalerl",
        "ScaleRL",
        "Khatri 2025 (arXiv:2510.13786)",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=parts.BatchStd(std_ddof=1, std_eps=1e-6),
            ratio=BEHAVIOUR_TOKEN,
            trust_region=CAP,
            aggregation=parts.PromptMean(),
            sampling=parts.Sampling(
                zero_variance_filter=True,
                no_positive_resampling=parts.NoPositiveResampling(threshold=0.9),
                interruption=parts.Interruption(min_fraction=0.83, max_fraction=1.0),
                truncated="mask",
            ),
        ),
        "48 prompts of 16 responses, cap 5, a float32 head and staleness 8; anything between 4 and 8 does as well.",
        "The deviation is taken over what the filter leaves. TRL's version keeps a running second moment and folds the "
        "prompt's token count into the advantage. Of the paper's recipe asynchronous training (staleness 8) is missing "
        "in this version: generator and trainer take turns.",
    ),
    Preset(
        "delta_l",
        "Delta-L",
        "Delta-L normalisation 2025, with the authors' clip and credit",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=OLD_TOKEN,
            trust_region=parts.Clip(low=0.2, high=0.3),
            aggregation=parts.DeltaL(alpha=0.75, scope="step"),
        ),
        "alpha 0.75 for mathematics, 1 for CountDown; 0 gives Dr. GRPO's aggregation.",
        "The published code normalises the weights over the rollout batch, also when a step sees only part of it: that "
        "is the scope rollout_batch.",
    ),
    Preset(
        "decoupled_ppo",
        "Decoupled PPO",
        "Hilton 2021 (arXiv:2110.00641); AReaL 2025 (arXiv:2505.24298)",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=GROUP_STD,
            ratio=OLD_TOKEN,
            trust_region=HIGHER_CLIP,
            aggregation=parts.TokenMean(),
            correction=CAPPED_CORRECTION,
        ),
        "Three policies: the ratio is to the trainer at the start of the step, a weight capped at 2 makes up for the "
        "generator's age.",
        "Credit by groups in place of a critic, which is our choice.",
    ),
    Preset(
        "brorl",
        "BroRL",
        "BroRL 2025 (arXiv:2510.01180)",
        parts.Algorithm(
            baseline=parts.GroupMean(),
            scale=parts.BatchWhiten(std_ddof=1, std_eps=1e-6),
            ratio=OLD_TOKEN,
            trust_region=HIGHER_CLIP,
            aggregation=parts.TokenMean(),
            correction=CAPPED_CORRECTION,
            sampling=RESAMPLED,
        ),
        "512 responses per prompt, the learning rate times the root of N/16, the number of minibatches unchanged.",
        "The paper gives neither clip values nor the aggregation; 0.2, 0.28 and the token mean are ours.",
    ),
)

PRESETS = {
    preset.name: replace(preset, algorithm=preset.algorithm.model_copy(update={"preset": preset.name}))
    for preset in ALL
}
