"""Options that the rest of a run makes meaningless: they change nothing, and the form says so."""

from collections.abc import Iterator

from vantage_trainer.composition import Clip, CriticGae, DeltaL, GroupMeanReward, Kl
from vantage_trainer.refusal import Refusal, RunCheck, refuse
from vantage_trainer.spec import RunSpec


def clip_on_policy(spec: RunSpec) -> Iterator[Refusal]:
    updates = spec.optimization.minibatches * spec.optimization.epochs
    kind = spec.algorithm.trust_region.kind
    if kind in ("clip", "truncate") and spec.algorithm.ratio.denominator == "old" and updates == 1:
        yield refuse(
            "never_off_policy",
            "algorithm.trust_region.kind",
            "With one optimizer step per batch the ratio to the old policy is 1, so the {kind} never acts.",
            kind=kind,
        )


def denominator_unread(spec: RunSpec) -> Iterator[Refusal]:
    ratio, kl = spec.algorithm.ratio, spec.algorithm.regularizer.kl
    read_by_kl = kl is not None and kl.estimator == "ratio_k3"
    if ratio.level == "none" and ratio.denominator == "behaviour" and not read_by_kl:
        yield refuse(
            "denominator_unread", "algorithm.ratio.denominator", "Without a ratio its denominator has no effect."
        )


def weightless(spec: RunSpec) -> Iterator[Refusal]:
    kl, entropy = spec.algorithm.regularizer.kl, spec.algorithm.regularizer.entropy
    overlong, critic = spec.algorithm.sampling.overlong, spec.algorithm.baseline
    named = {
        "algorithm.baseline.value_coef": isinstance(critic, CriticGae) and critic.value_coef == 0,
        "algorithm.regularizer.kl.coef": kl is not None and kl.coef == 0,
        "algorithm.regularizer.entropy.coef": entropy is not None and entropy.coef == 0,
        "algorithm.sampling.overlong.factor": overlong is not None and overlong.factor == 0,
    }
    for path, is_zero in named.items():
        if is_zero:
            yield refuse("weightless", path, "A weight of 0 turns this off.")


def critic_weight_forgotten(spec: RunSpec) -> Iterator[Refusal]:
    part = spec.algorithm.baseline
    if isinstance(part, CriticGae) and part.value_coef not in (0, 1) and spec.optimization.clip_norm == 0:
        yield refuse(
            "critic_weight_forgotten",
            "algorithm.baseline.value_coef",
            "The critic has an optimizer of its own, and Adam forgets a constant factor: without gradient clipping "
            "this weight changes next to nothing. Its learning rate does.",
        )


def critic_rate_unread(spec: RunSpec) -> Iterator[Refusal]:
    if spec.optimization.critic_learning_rate is not None and spec.algorithm.baseline.kind != "critic_gae":
        yield refuse(
            "critic_rate_unread", "optimization.critic_learning_rate", "The algorithm has no critic to learn with it."
        )


def budget_without_interruption(spec: RunSpec) -> Iterator[Refusal]:
    if spec.rollout.thinking_budget is not None and spec.algorithm.sampling.interruption is None:
        yield refuse(
            "budget_without_interruption",
            "rollout.thinking_budget",
            "Only interruption reads the thinking budget, and the algorithm does not interrupt.",
        )


def ratio_in_the_reward(spec: RunSpec) -> Iterator[Refusal]:
    kl = spec.algorithm.regularizer.kl
    if kl is not None and kl.where == "reward" and kl.estimator == "ratio_k3":
        yield refuse(
            "ratio_in_the_reward",
            "algorithm.regularizer.kl.estimator",
            "In the reward the ratio is 1, so ratio_k3 is k3.",
        )


def level_in_the_reward(spec: RunSpec) -> Iterator[Refusal]:
    kl = spec.algorithm.regularizer.kl
    summed = isinstance(kl, Kl) and kl.where == "reward" and kl.estimator == "k1"
    if summed and kl is not None and kl.level == "token" and spec.algorithm.baseline.kind != "critic_gae":
        yield refuse(
            "level_in_the_reward",
            "algorithm.regularizer.kl.level",
            "Without a critic the reward is one number per response, so token and sequence give the same sum of k1.",
        )


def reference_unread(spec: RunSpec) -> Iterator[Refusal]:
    if spec.algorithm.regularizer.kl is None and spec.reference.source != "none":
        yield refuse(
            "reference_unread",
            "reference.source",
            "The algorithm keeps no KL to the reference policy, so it only takes memory.",
        )


def refresh_without_reference(spec: RunSpec) -> Iterator[Refusal]:
    if spec.reference.refresh_every is not None and spec.reference.source == "none":
        yield refuse("refresh_unread", "reference.refresh_every", "There is no reference policy to refresh.")


def scope_of_one_step(spec: RunSpec) -> Iterator[Refusal]:
    part = spec.algorithm.aggregation
    if isinstance(part, DeltaL) and part.scope == "rollout_batch" and spec.optimization.minibatches == 1:
        yield refuse(
            "scope_of_one_step",
            "algorithm.aggregation.scope",
            "With one minibatch the step is the rollout batch, so both scopes are the same.",
        )


def kept_minus_one(spec: RunSpec) -> Iterator[Refusal]:
    part, sampling = spec.algorithm.scale, spec.algorithm.sampling
    filtered = sampling.zero_variance_filter or sampling.dynamic_sampling is not None
    if isinstance(part, GroupMeanReward) and part.zero_success == "keep_minus_one" and filtered:
        yield refuse(
            "all_wrong_filtered",
            "algorithm.scale.zero_success",
            "Groups without a right answer are left out by sampling, so what they would be given has no effect.",
        )


def warmup_over_budget(spec: RunSpec) -> Iterator[Refusal]:
    if spec.optimization.warmup_steps >= spec.budget.steps:
        yield refuse(
            "warmup_over_budget",
            "optimization.warmup_steps",
            "The learning rate is still rising when the {steps} steps of the budget are done.",
            steps=spec.budget.steps,
        )


def truncated_penalised_and_masked(spec: RunSpec) -> Iterator[Refusal]:
    sampling = spec.algorithm.sampling
    if sampling.overlong is not None and sampling.truncated == "mask":
        yield refuse(
            "penalised_and_masked",
            "algorithm.sampling.truncated",
            "Truncated responses are masked, so the full length penalty reaches only their group's statistics; "
            "usually one of the two is wanted.",
        )


def same_sample_again(spec: RunSpec) -> Iterator[Refusal]:
    for number, chosen in enumerate(spec.evaluation.sets):
        if chosen.temperature == 0 and chosen.n > 1:
            yield refuse(
                "same_sample_again",
                f"evaluation.sets.{number}.n",
                "At temperature 0 all {n} samples of a problem are the same.",
                n=chosen.n,
            )


def dual_under_the_band(spec: RunSpec) -> Iterator[Refusal]:
    part = spec.algorithm.trust_region
    if isinstance(part, Clip) and part.dual is not None and part.dual <= 1 + part.high:
        yield refuse(
            "dual_under_the_band",
            "algorithm.trust_region.dual",
            "The dual clip at {dual:g} lies inside the band that ends at {edge:g}; usually it is well above, as 3 is.",
            dual=part.dual,
            edge=1 + part.high,
        )


CHECKS: tuple[RunCheck, ...] = (
    clip_on_policy,
    denominator_unread,
    weightless,
    critic_weight_forgotten,
    critic_rate_unread,
    budget_without_interruption,
    ratio_in_the_reward,
    level_in_the_reward,
    reference_unread,
    refresh_without_reference,
    scope_of_one_step,
    kept_minus_one,
    warmup_over_budget,
    truncated_penalised_and_masked,
    same_sample_again,
    dual_under_the_band,
)
