"""What the parts of an algorithm are called and mean: by class for a choice, by class and field for an option."""

from vantage.forms_from_schema import Words

PARTS = {
    "Algorithm.baseline": ("Baseline", "What each reward is compared with; the difference is the advantage"),
    "Algorithm.scale": ("Scale", "What the advantage is divided by"),
    "Algorithm.ratio": ("Ratio", "How far the policy has moved since the response was sampled"),
    "Algorithm.trust_region": ("Trust region", "What limits how far one batch may move the policy"),
    "Algorithm.aggregation": ("Aggregation", "What each token of a response counts in the loss"),
    "Algorithm.correction": ("Correction", "Makes up for the generator computing other probabilities than the trainer"),
    "Algorithm.regularizer": ("Regularizer", "What is added to the loss or taken from the reward"),
    "Algorithm.sampling": ("Sampling", "Which responses take part, and how prompts are chosen"),
}
BASELINES = {
    "NoBaseline": ("None", "The advantage is the reward itself"),
    "BatchMean": ("Batch mean", "The mean reward of all responses of the step"),
    "Ema": ("Moving average", "A moving average of the mean rewards of earlier steps"),
    "CriticGae": ("Critic with GAE", "A trained value model predicts the reward at each token"),
    "GroupMean": ("Group mean", "The mean reward of all responses to the same prompt"),
    "GroupLeaveOneOut": ("Leave one out", "The mean reward of the other responses to the same prompt"),
    "Ema.momentum": ("Momentum", "Share of the old average that is kept at each step"),
    "CriticGae.gamma": ("Discount γ", "1: a later reward counts fully"),
    "CriticGae.lam": ("λ", "1: rewards as they came; 0: the critic's prediction alone"),
    "CriticGae.value_clip": ("Value clip", "How far a prediction may move in one update; empty: no limit"),
    "CriticGae.value_coef": ("Value weight", "Weight of the critic's loss"),
}
SCALES = {
    "NoScale": ("None", "Advantages stay as they are"),
    "GroupStd": ("Group deviation", "The standard deviation of the rewards to the same prompt"),
    "BatchStd": ("Batch deviation", "The standard deviation of the advantages of the step"),
    "BatchWhiten": ("Batch whitening", "Centred, then divided by the deviation over the step"),
    "TokenWhiten": ("Token whitening", "Centred and divided by the deviation over all trained tokens of the step"),
    "GroupMeanReward": ("Group mean reward", "The share of correct responses to the prompt; for rewards of 0 and 1"),
    "Deviation.std_ddof": ("Degrees of freedom", "1: divide by n - 1; 0: divide by n"),
    "Deviation.std_eps": ("ε", "Added to the deviation"),
    "GroupMeanReward.zero_success": ("If none is correct", "zero: no gradient; keep minus one: push all of them down"),
}
RATIOS = {
    "Ratio.level": ("Level", "One ratio per token, one per response (geometric mean or product), or none"),
    "Ratio.denominator": ("Against", "old: the trainer at the start of the step; behaviour: what the generator used"),
}
TRUST_REGIONS = {
    "NoTrustRegion": ("None", "No limit"),
    "Clip": ("Clip", "Beyond the bounds, in the direction the advantage pushes, the gradient is zero"),
    "Truncate": ("Truncated weight", "The ratio is a bounded weight; every token keeps its gradient"),
    "Divergence": ("Divergence mask", "Tokens whose probability moved too far, in the pushed direction, are left out"),
    "Clip.low": ("Lower ε", "Ratios below 1 minus this are clipped when the advantage is negative"),
    "Clip.high": ("Upper ε", "Ratios above 1 plus this are clipped when the advantage is positive"),
    "Clip.dual": ("Dual clip", "For negative advantages no gradient above this ratio; empty: off"),
    "Truncate.cap": ("Cap", "Highest weight"),
    "Truncate.floor": ("Floor", "Lowest weight"),
    "Divergence.measure": ("Measure", "Total variation or Kullback-Leibler, from behaviour to current policy"),
    "Divergence.form": ("Over", "binary: the sampled token against the rest; topk: the likeliest tokens and the rest"),
    "Divergence.low": ("Limit, negative advantage", "Largest divergence"),
    "Divergence.high": ("Limit, positive advantage", "Largest divergence"),
    "Divergence.k": ("Top k", "Tokens looked at in the form topk"),
    "Divergence.cap": ("Cap", "Highest ratio as weight; empty: none"),
}
AGGREGATIONS = {
    "TokenMean": ("Token mean", "Every token of the step counts the same, so long responses count more"),
    "SequenceMeanTokenMean": ("Mean per response", "Every response counts the same, its tokens share that"),
    "SequenceMeanTokenSum": ("Sum per response", "The tokens of a response add up; mean over responses"),
    "SequenceMeanTokenSumNorm": ("Sum over a fixed length", "The tokens add up, divided by a constant length"),
    "PromptMean": ("Mean per prompt", "Every prompt counts the same, the tokens of its responses share that"),
    "DeltaL": ("ΔL", "Responses weighted by a power of their length, for the least variance"),
    "SequenceMeanTokenSumNorm.length": ("Length", "A number of tokens, or the run's response limit"),
    "DeltaL.alpha": ("α", "0: all alike; 1: as one over the length"),
    "DeltaL.length": ("Length", "A number of tokens, or the run's response limit"),
    "DeltaL.scope": ("Over", "Weights add up over each optimizer step or over the batch sampled together"),
}
CORRECTIONS = {
    "NoCorrection": ("None", "The generator's probabilities are taken to be the trainer's"),
    "TruncateCorrection": ("Truncated weight", "Weight by trainer over generator, bounded"),
    "MaskCorrection": ("Mask", "Weight within the bounds, leave out what lies outside"),
    "RejectCorrection": ("Reject", "Leave out what lies outside the bounds, no weight"),
    "ImportanceCorrection.level": ("Level", "Per token, per response (product) or its geometric mean"),
    "ImportanceCorrection.low": ("Lower bound", "Empty: none"),
    "ImportanceCorrection.high": ("Upper bound", "Empty: none"),
}
REGULARIZERS = {
    "Regularizer.kl": ("KL to the reference", "Keeps the policy near the reference policy"),
    "Regularizer.entropy": ("Entropy", "Rewards a policy that stays undecided"),
    "Kl.where": ("Where", "In the loss with its gradient, or taken from the reward"),
    "Kl.estimator": (
        "Estimator",
        "k1: log ratio; k2: half its square; k3: never negative; ratio k3: weighted for drift",
    ),
    "Kl.coef": ("Weight β", ""),
    "Kl.level": ("Level", "In the reward: at each token, or summed over the response"),
    "Entropy.coef": ("Weight", "Positive: more entropy"),
}
SAMPLING = {
    "Sampling.zero_variance_filter": ("Zero-variance filter", "Leave out groups whose rewards are all the same"),
    "Sampling.dynamic_sampling": (
        "Dynamic sampling",
        "Sample again until enough groups are neither all right nor wrong",
    ),
    "Sampling.no_positive_resampling": ("No resampling of solved prompts", "Never again sample what is solved"),
    "Sampling.overlong": ("Overlong penalty", "Take off reward near the length limit"),
    "Sampling.interruption": ("Forced interruption", "End the thinking at a random point near its budget"),
    "Sampling.truncated": ("Truncated responses", "Keep them, mask them out of the loss, or give them reward 0"),
    "DynamicSampling.max_batches": ("At most", "Batches sampled for one step"),
    "NoPositiveResampling.threshold": ("Solved from", "Success rate at the last visit"),
    "Overlong.limit": ("Limit", "A number of tokens, or the run's response limit"),
    "Overlong.buffer": ("Buffer", "Tokens before the limit over which the penalty grows; empty: by share"),
    "Overlong.buffer_fraction": ("Buffer share", "Share of the limit, where no buffer is given"),
    "Overlong.factor": ("Factor", "Highest penalty"),
    "Interruption.min_fraction": ("From", "Share of the thinking budget"),
    "Interruption.max_fraction": ("To", "Share of the thinking budget"),
}
WORDS: Words = (
    PARTS | BASELINES | SCALES | RATIOS | TRUST_REGIONS | AGGREGATIONS | CORRECTIONS | REGULARIZERS | SAMPLING
)
