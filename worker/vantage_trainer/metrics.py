"""Every metric's name, unit and definition, once for all algorithms. Means are global sums over global counts."""

from dataclasses import dataclass
from typing import Literal

Good = Literal["up", "down", "neither"]
Group = Literal["learning", "exploring", "safe", "signal", "speed", "devices"]


@dataclass(frozen=True)
class Metric:
    """One row of the dictionary; `<part>` in a name stands for any text without a slash."""

    name: str
    title: str
    unit: str
    group: Group
    good: Good
    definition: str
    denominator: str = ""
    zero_by_construction: str = ""


# Decided by a clock or a machine: a step that is computed twice differs in these.
CLOCKED = ("time/", "node/", "tokens/per_second", "compute/device_hours")
ONE_STEP = "one on-policy step per batch: the ratio is 1 everywhere"
NO_CLIP = "this algorithm's trust region does not clip"

METRICS = (
    Metric(
        "reward/mean",
        "Reward",
        "",
        "learning",
        "up",
        "Shaped reward, averaged over scored responses",
        "scored responses",
    ),
    Metric(
        "reward/std",
        "Reward spread",
        "",
        "learning",
        "neither",
        "Standard deviation of the shaped reward (ddof 0)",
        "scored responses",
    ),
    Metric(
        "reward/part/<name>",
        "Reward part",
        "",
        "learning",
        "up",
        "One part of the reward, before its weight",
        "scored responses",
    ),
    Metric(
        "train/correct",
        "Training accuracy",
        "fraction",
        "learning",
        "up",
        "Share of sampled responses that are correct, unshaped",
        "scored responses",
    ),
    Metric(
        "eval/<set>/pass@<k>",
        "pass@k",
        "fraction",
        "learning",
        "up",
        "Chance that at least one of k samples is correct; unbiased, 1 - C(n-c,k)/C(n,k)",
        "problems",
    ),
    Metric(
        "eval/<set>/mean",
        "Held-out accuracy",
        "fraction",
        "learning",
        "up",
        "Mean accuracy over all samples of all problems",
        "samples",
    ),
    Metric(
        "eval/<set>/low",
        "Held-out accuracy, lower end",
        "fraction",
        "learning",
        "up",
        "Lower end of the 95% interval of pass@1 over problems",
    ),
    Metric(
        "eval/<set>/high",
        "Held-out accuracy, upper end",
        "fraction",
        "learning",
        "up",
        "Upper end of the 95% interval of pass@1 over problems",
    ),
    Metric(
        "eval/<set>/length",
        "Held-out length",
        "tokens",
        "learning",
        "neither",
        "Mean response length during evaluation",
        "samples",
    ),
    Metric(
        "warm_start/loss",
        "Warm-start loss",
        "nats/token",
        "learning",
        "down",
        "Cross-entropy of the written solutions",
        "solution tokens",
    ),
    Metric(
        "warm_start/<set>/pass@<k>",
        "pass@k before the warm start",
        "fraction",
        "learning",
        "up",
        "Chance that at least one of k samples of the model as it comes is correct",
        "problems",
    ),
    Metric(
        "warm_start/lr", "Warm-start learning rate", "", "learning", "neither", "Learning rate of the supervised stage"
    ),
    Metric(
        "length/mean", "Response length", "tokens", "exploring", "neither", "Trained tokens per response", "responses"
    ),
    Metric(
        "length/max", "Longest response", "tokens", "exploring", "neither", "Trained tokens of the longest response"
    ),
    Metric(
        "length/correct",
        "Length when correct",
        "tokens",
        "exploring",
        "neither",
        "Mean length of correct responses",
        "correct responses",
    ),
    Metric(
        "length/wrong",
        "Length when wrong",
        "tokens",
        "exploring",
        "neither",
        "Mean length of wrong responses",
        "wrong responses",
    ),
    Metric(
        "length/truncated_fraction",
        "Cut at the limit",
        "fraction",
        "exploring",
        "down",
        "Responses that reached the response limit without ending",
        "responses",
    ),
    Metric(
        "length/interrupted_fraction",
        "Interrupted thinking",
        "fraction",
        "exploring",
        "down",
        "Responses whose thinking outgrew its budget and was told to end",
        "responses",
    ),
    Metric(
        "policy/entropy",
        "Entropy",
        "nats",
        "exploring",
        "neither",
        "Entropy of the sampling distribution over the full vocabulary",
        "trained tokens",
    ),
    Metric(
        "clip/low",
        "Clipped low",
        "fraction",
        "safe",
        "down",
        "Ratio under 1 - low where the advantage is negative",
        "trained tokens (sequences for a sequence ratio)",
        ONE_STEP,
    ),
    Metric(
        "clip/high",
        "Clipped high",
        "fraction",
        "safe",
        "down",
        "Ratio over 1 + high where the advantage is positive",
        "trained tokens (sequences for a sequence ratio)",
        ONE_STEP,
    ),
    Metric(
        "clip/fraction",
        "Clip fraction",
        "fraction",
        "safe",
        "down",
        "clip/low + clip/high",
        "trained tokens (sequences for a sequence ratio)",
        ONE_STEP,
    ),
    Metric(
        "clip/dual",
        "Dual-clipped",
        "fraction",
        "safe",
        "down",
        "Ratio over the dual clip where the advantage is negative",
        "trained tokens",
        ONE_STEP,
    ),
    Metric(
        "clip/truncated_weight",
        "Truncated weights",
        "fraction",
        "safe",
        "down",
        "Importance weights cut by the cap or floor, any sign of the advantage",
        "trained tokens",
        ONE_STEP,
    ),
    Metric(
        "clip/masked",
        "Masked by divergence",
        "fraction",
        "safe",
        "down",
        "Tokens a divergence mask blocks",
        "trained tokens with advantage != 0",
        ONE_STEP,
    ),
    Metric("policy/loss", "Policy loss", "", "safe", "neither", "The loss of the step, summed with its coefficients"),
    Metric(
        "policy/kl_ref",
        "KL to reference",
        "nats",
        "safe",
        "neither",
        "k3 estimate of KL(policy || reference)",
        "trained tokens",
    ),
    Metric(
        "policy/kl_old",
        "KL old to new",
        "nats",
        "safe",
        "neither",
        "k3 estimate of the drift inside the step",
        "trained tokens",
        ONE_STEP,
    ),
    Metric("policy/grad_norm", "Gradient norm", "", "safe", "neither", "Global 2-norm before clipping"),
    Metric("policy/lr", "Learning rate", "", "safe", "neither", "Learning rate of the step"),
    Metric(
        "critic/loss",
        "Value loss",
        "",
        "safe",
        "down",
        "The critic's clipped squared error, halved and summed with its coefficients, before its weight",
    ),
    Metric(
        "critic/explained_variance",
        "Explained variance",
        "fraction",
        "safe",
        "up",
        "1 - Var(return - value) / Var(return), with the values before the update; 0 is a constant guess",
        "trained tokens",
    ),
    Metric(
        "critic/clip_fraction",
        "Values clipped",
        "fraction",
        "safe",
        "down",
        "Values that left the band around their old ones on the side of the return and learn nothing more",
        "trained tokens",
        ONE_STEP,
    ),
    Metric(
        "critic/value_mean",
        "Value",
        "",
        "safe",
        "neither",
        "What the critic expects before each token, before the update",
        "trained tokens",
    ),
    Metric("critic/return_mean", "Return", "", "safe", "neither", "What the critic learns to expect", "trained tokens"),
    Metric("critic/grad_norm", "Critic's gradient norm", "", "safe", "neither", "Global 2-norm before clipping"),
    Metric("critic/lr", "Critic's learning rate", "", "safe", "neither", "Learning rate of the critic's step"),
    Metric(
        "mismatch/kl",
        "Generator mismatch KL",
        "nats",
        "safe",
        "down",
        "k3 estimate between generator and trainer at the same weights",
        "trained tokens",
    ),
    Metric(
        "mismatch/ess",
        "Effective sample size",
        "fraction",
        "safe",
        "up",
        "(sum w)^2 / (n sum w^2) of old/behaviour weights",
        "trained tokens",
    ),
    Metric(
        "mismatch/max_ratio",
        "Largest mismatch ratio",
        "",
        "safe",
        "down",
        "Largest old/behaviour ratio of a trained token",
    ),
    Metric(
        "mismatch/logp_gap",
        "Log-probability gap",
        "nats",
        "safe",
        "down",
        "Mean absolute old - behaviour log-probability",
        "trained tokens",
    ),
    Metric(
        "signal/mixed",
        "Mixed groups",
        "fraction",
        "signal",
        "up",
        "Groups with right and wrong answers: these teach",
        "groups",
    ),
    Metric(
        "signal/all_correct", "All correct", "fraction", "signal", "neither", "Groups with only right answers", "groups"
    ),
    Metric("signal/all_wrong", "All wrong", "fraction", "signal", "down", "Groups with only wrong answers", "groups"),
    Metric(
        "signal/truncated",
        "Truncated groups",
        "fraction",
        "signal",
        "down",
        "Groups with a response cut at the limit",
        "groups",
    ),
    Metric(
        "signal/errored",
        "Errored groups",
        "fraction",
        "signal",
        "down",
        "Groups with a response that could not be scored",
        "groups",
    ),
    Metric(
        "signal/stale",
        "Stale groups",
        "fraction",
        "signal",
        "down",
        "Groups with a sample over the allowed age",
        "groups",
        "the run is synchronous",
    ),
    Metric(
        "data/pool",
        "Prompts left",
        "prompts",
        "signal",
        "neither",
        "Training prompts that are not retired: their latest share of right answers is under the threshold",
    ),
    Metric("time/step", "Step", "s", "speed", "down", "Wall time of the step"),
    Metric("time/generate", "Generation", "s", "speed", "down", "Wall time of sampling"),
    Metric("time/reward", "Reward", "s", "speed", "down", "Wall time of scoring"),
    Metric("time/train", "Update", "s", "speed", "down", "Wall time of forward, backward and optimizer"),
    Metric("time/sync", "Weight sync", "s", "speed", "down", "Wall time of moving and proving the weights"),
    Metric("time/evaluate", "Evaluation", "s", "speed", "down", "Wall time of evaluation"),
    Metric(
        "tokens/generated",
        "Generated tokens",
        "tokens",
        "speed",
        "neither",
        "Sampled so far in current steps, filtered samples included",
    ),
    Metric(
        "tokens/trained",
        "Trained tokens",
        "tokens",
        "speed",
        "neither",
        "Tokens that carried a coefficient so far, those of the warm start included",
    ),
    Metric(
        "tokens/per_second",
        "Tokens per second",
        "tokens/s",
        "speed",
        "up",
        "Generated tokens over the step's wall time",
    ),
    Metric(
        "compute/flops",
        "FLOPs",
        "FLOP",
        "speed",
        "neither",
        "Floating-point operations so far, warm start included: 6 N per trained token, a critic's N too, "
        "2 N per generated token",
    ),
    Metric("compute/device_hours", "Device hours", "h", "speed", "neither", "Devices times wall time so far"),
    Metric(
        "node/cpu/util",
        "Processor",
        "fraction",
        "devices",
        "neither",
        "Share of all the node's cores that was busy, other runs' work included; mean from this step's end to the next",
    ),
    Metric(
        "node/<device>/util",
        "Use",
        "fraction",
        "devices",
        "neither",
        "Share of time in which the run's device was busy; mean from this step's end to the next",
    ),
    Metric(
        "node/memory/used",
        "Node",
        "bytes",
        "devices",
        "neither",
        "Memory of the node in use by all that runs there; mean from this step's end to the next",
    ),
    Metric(
        "node/<device>/memory",
        "Memory",
        "bytes",
        "devices",
        "neither",
        "Memory in use on the run's device; mean from this step's end to the next",
    ),
    Metric(
        "node/disk/free",
        "Free disk",
        "bytes",
        "devices",
        "up",
        "Room left on the disk that holds the run folder; mean from this step's end to the next",
    ),
    *(
        Metric(f"rescore/{name}", title, unit, "learning", "neither", says, "completions of the step")
        for name, title, unit, says in (
            ("reward_before", "Reward as it was", "", "Stored reward before shaping, where it could be scored"),
            ("reward_after", "Reward with the edited parts", "", "The same with the edited reward"),
            ("correct_before", "Accuracy as it was", "fraction", "Share that counted as correct"),
            ("correct_after", "Accuracy with the edited reward", "fraction", "Share that would count as correct"),
            ("right_to_wrong", "From right to wrong", "fraction", "Correct before and not after"),
            ("wrong_to_right", "From wrong to right", "fraction", "Correct after and not before"),
            ("unscored_before", "Not scored before", "fraction", "What the run's reward could not judge"),
            ("unscored_after", "Not scored after", "fraction", "What the edited reward could not judge"),
            ("sign_flips", "Advantages that turn", "fraction", "Their sign becomes the opposite one"),
            ("signal_gained", "Advantages that appear", "fraction", "From 0, or no part in the step, to a value"),
            ("signal_lost", "Advantages that vanish", "fraction", "From a value to 0, or to no part in the step"),
        )
    ),
)


def find(key: str) -> Metric | None:
    """Return the dictionary's row for a concrete key such as `eval/heldout/pass@4`."""
    return next((metric for metric in METRICS if _fits(metric.name, key)), None)


def is_clocked(key: str) -> bool:
    """Tell whether a clock or a machine decides the value, so that it says nothing about what was computed."""
    return key.startswith(CLOCKED)


def _fits(pattern: str, key: str) -> bool:
    wanted, given = pattern.split("/"), key.split("/")
    return len(wanted) == len(given) and all(map(_piece_fits, wanted, given))


def _piece_fits(wanted: str, given: str) -> bool:
    head, bracket, _ = wanted.partition("<")
    return given == wanted if not bracket else given.startswith(head) and len(given) > len(head)
