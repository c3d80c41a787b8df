"""Runs whose settings contradict each other: groups, batches, sampling, references, datasets."""

from collections.abc import Iterator

from vantage_trainer.composition import Algorithm
from vantage_trainer.refusal import Refusal, RunCheck, refuse
from vantage_trainer.spec import RunSpec

GROUP_BASELINES = ("group_mean", "group_leave_one_out")
GROUP_SCALES = ("group_std", "group_mean_reward")


def group_of_one(spec: RunSpec) -> Iterator[Refusal]:
    algorithm = spec.algorithm
    needs = _what_needs_a_group(algorithm)
    if spec.rollout.group_size == 1 and needs:
        yield refuse(
            "group_of_one",
            "rollout.group_size",
            "{needs} compares the responses of one prompt, so a group needs at least 2; "
            "raise the group size or choose batch_mean as baseline.",
            needs=needs,
        )


def _what_needs_a_group(algorithm: Algorithm) -> str:
    named = {
        f"The baseline {algorithm.baseline.kind}": algorithm.baseline.kind in GROUP_BASELINES,
        f"The scale {algorithm.scale.kind}": algorithm.scale.kind in GROUP_SCALES,
        "Dynamic sampling": algorithm.sampling.dynamic_sampling is not None,
        "The zero-variance filter": algorithm.sampling.zero_variance_filter,
    }
    return next((name for name, needs in named.items() if needs), "")


def batch_of_one(spec: RunSpec) -> Iterator[Refusal]:
    alone = spec.rollout.prompts_per_step * spec.rollout.group_size == 1
    if alone and (spec.algorithm.baseline.kind == "batch_mean" or spec.algorithm.scale.kind.startswith("batch")):
        yield refuse(
            "batch_of_one",
            "rollout.prompts_per_step",
            "One response has nothing to be compared with; raise the prompts per step or the group size.",
        )


def batch_not_divided(spec: RunSpec) -> Iterator[Refusal]:
    """Minibatches hold whole prompts, so that a group is never split and none is smaller than the others."""
    prompts, minibatches = spec.rollout.prompts_per_step, spec.optimization.minibatches
    if prompts % minibatches:
        by_prompt = spec.algorithm.aggregation.kind == "prompt_mean"
        yield refuse(
            "group_split" if by_prompt else "batch_not_divided",
            "optimization.minibatches",
            "{prompts} prompts of {group} responses do not divide into {minibatches} minibatches of whole prompts; "
            "choose a divisor of {prompts}.",
            prompts=prompts,
            group=spec.rollout.group_size,
            minibatches=minibatches,
        )


def divergence_never_differs(spec: RunSpec) -> Iterator[Refusal]:
    updates = spec.optimization.minibatches * spec.optimization.epochs
    anchored = spec.algorithm.trust_region.kind == "divergence" and spec.algorithm.ratio.denominator == "old"
    if anchored and updates == 1:
        yield refuse(
            "divergence_never_differs",
            "algorithm.ratio.denominator",
            "With one optimizer step per batch the policy never leaves its old self, so this divergence is always 0; "
            "set the denominator to behaviour or take more minibatches.",
        )


def rewards_not_binary(spec: RunSpec) -> Iterator[Refusal]:
    if spec.algorithm.scale.kind != "group_mean_reward":
        return
    if len(spec.reward.parts) != 1 or spec.reward.parts[0].weight != 1:
        yield refuse(
            "maxrl_needs_binary",
            "reward.parts",
            "Scaling by the group's mean reward (MaxRL) needs rewards of 0 or 1; "
            "keep one reward part that answers 0 or 1 and give it weight 1.",
        )


def truncated_distribution(spec: RunSpec) -> Iterator[Refusal]:
    user = _what_reads_behaviour(spec.algorithm)
    for name, active in (("top_p", spec.rollout.top_p < 1), ("top_k", spec.rollout.top_k > 0)):
        if active and user:
            yield refuse(
                "behaviour_truncated",
                f"rollout.{name}",
                "{user} compares with the generator's probabilities, which {name} cuts off; "
                "set {name} to {off} or the ratio's denominator to old and correction to none.",
                user=user,
                name=name,
                off={"top_p": "1", "top_k": "0"}[name],
            )


def _what_reads_behaviour(algorithm: Algorithm) -> str:
    if algorithm.correction.kind != "none":
        return "The correction"
    reads = algorithm.ratio.denominator == "behaviour" and (
        algorithm.ratio.level != "none" or _estimates_with_ratio(algorithm)
    )
    return "The ratio" if reads else ""


def _estimates_with_ratio(algorithm: Algorithm) -> bool:
    kl = algorithm.regularizer.kl
    return kl is not None and kl.where == "loss" and kl.estimator == "ratio_k3"


def kl_without_reference(spec: RunSpec) -> Iterator[Refusal]:
    kl = spec.algorithm.regularizer.kl
    if kl is not None and kl.coef > 0 and spec.reference.source == "none":
        yield refuse(
            "kl_without_reference",
            "reference.source",
            "The algorithm keeps a KL of weight {coef:g} to a reference policy, and there is none; "
            "set the reference to start or turn the KL off.",
            coef=kl.coef,
        )


def reference_without_folder(spec: RunSpec) -> Iterator[Refusal]:
    if spec.reference.source == "path" and not spec.reference.path:
        yield refuse(
            "reference_without_folder",
            "reference.path",
            "The reference policy is to come from a folder, and none is named; name one or choose start.",
        )


def overlong_limits(spec: RunSpec) -> Iterator[Refusal]:
    part, response_limit = spec.algorithm.sampling.overlong, spec.rollout.response_limit
    if part is None:
        return
    limit = response_limit if part.limit == "rollout.response_limit" else part.limit
    if limit > response_limit:
        yield refuse(
            "overlong_never_reached",
            "algorithm.sampling.overlong.limit",
            "The length penalty's limit of {limit} tokens lies above the response limit of {response_limit}; "
            "lower the first or raise the second.",
            limit=limit,
            response_limit=response_limit,
        )
    if part.buffer is not None and part.buffer > limit:
        yield refuse(
            "overlong_buffer_too_wide",
            "algorithm.sampling.overlong.buffer",
            "The length penalty's buffer of {buffer} tokens is longer than its limit of {limit}; shorten it.",
            buffer=part.buffer,
            limit=limit,
        )


def thinking_over_response(spec: RunSpec) -> Iterator[Refusal]:
    budget, limit = spec.rollout.thinking_budget, spec.rollout.response_limit
    if budget is not None and budget >= limit:
        yield refuse(
            "thinking_over_response",
            "rollout.thinking_budget",
            "A thinking budget of {budget} tokens leaves nothing of the response limit of {limit} for the answer; "
            "lower the budget.",
            budget=budget,
            limit=limit,
        )


def interruption_without_budget(spec: RunSpec) -> Iterator[Refusal]:
    if spec.algorithm.sampling.interruption is not None and spec.rollout.thinking_budget is None:
        yield refuse(
            "interruption_without_budget",
            "rollout.thinking_budget",
            "Interrupting the thinking needs a thinking budget; give one or turn the interruption off.",
        )


def devices_not_divided(spec: RunSpec) -> Iterator[Refusal]:
    generation, parallel = spec.resources.generation_devices, spec.resources.tensor_parallel
    if generation % parallel:
        yield refuse(
            "devices_not_divided",
            "resources.tensor_parallel",
            "{generation} devices for generation do not divide into engines of {parallel}; choose a divisor.",
            generation=generation,
            parallel=parallel,
        )


def unknown_model(spec: RunSpec) -> Iterator[Refusal]:
    if not spec.model.name.strip():
        yield refuse("no_model", "model.name", "Name the model: tiny, a package, a folder on the node or a hub id.")
    elif spec.model.source == "tiny" and spec.model.name not in ("tiny", "tiny-untied"):
        yield refuse(
            "unknown_model",
            "model.name",
            "Vantage makes no model called {name}; choose tiny or tiny-untied, or another source.",
            name=spec.model.name,
        )


CHECKS: tuple[RunCheck, ...] = (
    unknown_model,
    group_of_one,
    batch_of_one,
    batch_not_divided,
    divergence_never_differs,
    rewards_not_binary,
    truncated_distribution,
    kl_without_reference,
    reference_without_folder,
    overlong_limits,
    thinking_over_response,
    interruption_without_budget,
    devices_not_divided,
)
