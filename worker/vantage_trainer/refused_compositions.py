"""Compositions that have no meaning, whatever the run around them, or that this version cannot compute yet."""

from collections.abc import Iterator

from vantage_trainer.composition import Algorithm, Divergence, NoCorrection, Truncate, TruncateCorrection
from vantage_trainer.refusal import CompositionCheck, Refusal, refuse


def critic_with_a_scale(algorithm: Algorithm) -> Iterator[Refusal]:
    if algorithm.baseline.kind == "critic_gae" and algorithm.scale.kind not in ("none", "token_whiten"):
        yield refuse(
            "critic_with_a_scale",
            "algorithm.scale.kind",
            "A critic gives one advantage per token and {scale} divides one per response; choose token_whiten or none.",
            scale=algorithm.scale.kind,
        )


def critic_under_a_sequence_ratio(algorithm: Algorithm) -> Iterator[Refusal]:
    sequence = algorithm.ratio.level.startswith("sequence")
    if algorithm.baseline.kind == "critic_gae" and sequence and algorithm.trust_region.kind == "clip":
        yield refuse(
            "critic_under_a_sequence_ratio",
            "algorithm.ratio.level",
            "A critic gives each token its own advantage, and one ratio per sequence under a clip moves all its tokens "
            "alike; set the ratio's level to token.",
        )


def top_tokens_of_the_old_policy(algorithm: Algorithm) -> Iterator[Refusal]:
    part = algorithm.trust_region
    if isinstance(part, Divergence) and part.form == "topk" and algorithm.ratio.denominator == "old":
        yield refuse(
            "topk_of_old",
            "algorithm.ratio.denominator",
            "The top {k} tokens are those of the generator, so the divergence is from it; "
            "set the ratio's denominator to behaviour or choose the form binary.",
            k=part.k,
        )


def correction_counted_twice(algorithm: Algorithm) -> Iterator[Refusal]:
    if algorithm.correction.kind != "none" and algorithm.ratio.denominator == "behaviour":
        yield refuse(
            "correction_counted_twice",
            "algorithm.correction.kind",
            "A ratio to the behaviour policy already holds the correction; set correction to none "
            "or the ratio's denominator to old.",
        )


def correction_without_bounds(algorithm: Algorithm) -> Iterator[Refusal]:
    part = algorithm.correction
    if isinstance(part, NoCorrection):
        return
    if part.low is None and part.high is None:
        yield refuse(
            "correction_without_bounds",
            "algorithm.correction.high",
            "The correction has no bounds, so it corrects nothing it could bound; give low, high or both.",
        )
    if isinstance(part, TruncateCorrection) and part.high is None and part.low is not None:
        yield refuse(
            "truncation_without_cap",
            "algorithm.correction.high",
            "Truncating importance weights needs a cap; give high, for example 2.",
        )
    if part.low is not None and part.high is not None and part.low > part.high:
        yield refuse(
            "bounds_crossed",
            "algorithm.correction.low",
            "The correction's low {low:g} lies above its high {high:g}; swap them.",
            low=part.low,
            high=part.high,
        )


def floor_over_cap(algorithm: Algorithm) -> Iterator[Refusal]:
    part = algorithm.trust_region
    if isinstance(part, Truncate) and part.floor > part.cap:
        yield refuse(
            "floor_over_cap",
            "algorithm.trust_region.floor",
            "The floor {floor:g} lies above the cap {cap:g}; lower the floor, 0 turns it off.",
            floor=part.floor,
            cap=part.cap,
        )


def trust_region_without_ratio(algorithm: Algorithm) -> Iterator[Refusal]:
    kind = algorithm.trust_region.kind
    if kind != "none" and algorithm.ratio.level == "none":
        yield refuse(
            "trust_region_without_ratio",
            "algorithm.ratio.level",
            "A {kind} trust region bounds a ratio, and there is none; set the ratio's level to token "
            "or the trust region to none.",
            kind=kind,
        )


def k1_as_loss(algorithm: Algorithm) -> Iterator[Refusal]:
    kl = algorithm.regularizer.kl
    if kl is not None and kl.where == "loss" and kl.estimator == "k1":
        yield refuse(
            "k1_as_loss",
            "algorithm.regularizer.kl.estimator",
            "k1 has no expected gradient as a loss; choose k2, k3 or ratio_k3, or move the KL into the reward.",
        )


def success_rate_of_shaped_rewards(algorithm: Algorithm) -> Iterator[Refusal]:
    if algorithm.scale.kind != "group_mean_reward":
        return
    if algorithm.sampling.overlong is not None:
        yield refuse(
            "maxrl_needs_binary",
            "algorithm.sampling.overlong",
            "Scaling by the group's mean reward (MaxRL) needs rewards of 0 or 1, and the length penalty changes them; "
            "turn it off.",
        )
    if algorithm.regularizer.kl is not None and algorithm.regularizer.kl.where == "reward":
        yield refuse(
            "maxrl_needs_binary",
            "algorithm.regularizer.kl.where",
            "Scaling by the group's mean reward (MaxRL) needs rewards of 0 or 1, and a KL in the reward changes them; "
            "move the KL into the loss.",
        )


def interruption_bounds(algorithm: Algorithm) -> Iterator[Refusal]:
    part = algorithm.sampling.interruption
    if part is not None and part.min_fraction > part.max_fraction:
        yield refuse(
            "bounds_crossed",
            "algorithm.sampling.interruption.min_fraction",
            "The interruption's smallest share {low:g} lies above its largest {high:g}; swap them.",
            low=part.min_fraction,
            high=part.max_fraction,
        )


CHECKS: tuple[CompositionCheck, ...] = (
    critic_with_a_scale,
    critic_under_a_sequence_ratio,
    top_tokens_of_the_old_policy,
    correction_counted_twice,
    correction_without_bounds,
    floor_over_cap,
    trust_region_without_ratio,
    k1_as_loss,
    success_rate_of_shaped_rewards,
    interruption_bounds,
)
