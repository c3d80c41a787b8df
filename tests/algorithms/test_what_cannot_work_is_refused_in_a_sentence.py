"""Each refusal and each note, by code and field; and what the schema refuses, in the same words."""

import pytest
from pydantic import ValidationError
from vantage_trainer.presets import PRESETS
from vantage_trainer.refusals import explain, pointless, refusals
from vantage_trainer.spec import RunSpec

BEHAVIOUR = {"level": "token", "denominator": "behaviour"}
CLIPPED = {"ratio": {"level": "token"}, "trust_region": {"kind": "clip"}}
GROUPED = {"baseline": {"kind": "group_mean"}}
MAXRL = GROUPED | {"scale": {"kind": "group_mean_reward"}}
KL = {"regularizer": {"kl": {"coef": 0.1}}}
REWARD_KL = {"regularizer": {"kl": {"where": "reward", "estimator": "k1"}}}
TOP_K = {"kind": "divergence", "form": "topk"}


def algorithm(**parts: object) -> dict:
    return {"algorithm": parts}


def run(sections: dict) -> RunSpec:
    return RunSpec.model_validate({"data": {"train": "arithmetic@1"}} | sections)


def one_set(**fields: object) -> dict:
    return {"evaluation": {"sets": [{"dataset": "held@1"} | fields]}}


REFUSED = [
    ("no_model", "model.name", {"model": {"source": "folder", "name": " "}}),
    ("unknown_model", "model.name", {"model": {"source": "tiny", "name": "large"}}),
    ("bad_chat_template", "model.chat_template", {"model": {"chat_template": "{% for m in messages %}"}}),
    ("bad_chat_template", "model.chat_template", {"model": {"chat_template": "{{ messages | shout }}"}}),
    (
        "critic_under_a_sequence_ratio",
        "algorithm.ratio.level",
        algorithm(baseline={"kind": "critic_gae"}, **CLIPPED | {"ratio": {"level": "sequence_geometric"}}),
    ),
    (
        "critic_with_a_scale",
        "algorithm.scale.kind",
        algorithm(baseline={"kind": "critic_gae"}, scale={"kind": "group_std"}),
    ),
    ("unavailable", "algorithm.trust_region.form", algorithm(ratio=BEHAVIOUR, trust_region=TOP_K)),
    ("topk_of_old", "algorithm.ratio.denominator", algorithm(ratio={"level": "token"}, trust_region=TOP_K)),
    (
        "correction_counted_twice",
        "algorithm.correction.kind",
        algorithm(ratio=BEHAVIOUR, correction={"kind": "truncate"}),
    ),
    (
        "correction_without_bounds",
        "algorithm.correction.high",
        algorithm(correction={"kind": "mask", "low": None, "high": None}),
    ),
    (
        "truncation_without_cap",
        "algorithm.correction.high",
        algorithm(correction={"kind": "truncate", "low": 0.5, "high": None}),
    ),
    ("bounds_crossed", "algorithm.correction.low", algorithm(correction={"kind": "reject", "low": 3.0, "high": 2.0})),
    (
        "floor_over_cap",
        "algorithm.trust_region.floor",
        algorithm(ratio={"level": "token"}, trust_region={"kind": "truncate", "cap": 1.0, "floor": 2.0}),
    ),
    ("trust_region_without_ratio", "algorithm.ratio.level", algorithm(trust_region={"kind": "clip"})),
    (
        "k1_as_loss",
        "algorithm.regularizer.kl.estimator",
        {"reference": {"source": "start"}} | algorithm(regularizer={"kl": {"estimator": "k1"}}),
    ),
    (
        "maxrl_needs_binary",
        "algorithm.sampling.overlong",
        algorithm(**MAXRL, sampling={"overlong": {}}),
    ),
    (
        "maxrl_needs_binary",
        "algorithm.regularizer.kl.where",
        {"reference": {"source": "start"}} | algorithm(**MAXRL, **REWARD_KL),
    ),
    ("maxrl_needs_binary", "reward.parts", {"reward": {"parts": [{"weight": 2.0}]}} | algorithm(**MAXRL)),
    (
        "bounds_crossed",
        "algorithm.sampling.interruption.min_fraction",
        {"rollout": {"thinking_budget": 32}}
        | algorithm(sampling={"interruption": {"min_fraction": 0.9, "max_fraction": 0.5}}),
    ),
    ("interruption_without_budget", "rollout.thinking_budget", algorithm(sampling={"interruption": {}})),
    ("group_of_one", "rollout.group_size", {"rollout": {"group_size": 1}} | algorithm(**GROUPED)),
    ("group_of_one", "rollout.group_size", {"rollout": {"group_size": 1}} | algorithm(scale={"kind": "group_std"})),
    (
        "group_of_one",
        "rollout.group_size",
        {"rollout": {"group_size": 1}} | algorithm(sampling={"zero_variance_filter": True}),
    ),
    (
        "batch_of_one",
        "rollout.prompts_per_step",
        {"rollout": {"group_size": 1, "prompts_per_step": 1}} | algorithm(baseline={"kind": "batch_mean"}),
    ),
    (
        "batch_not_divided",
        "optimization.minibatches",
        {"rollout": {"prompts_per_step": 6, "group_size": 8}, "optimization": {"minibatches": 4}},
    ),
    (
        "group_split",
        "optimization.minibatches",
        {"rollout": {"prompts_per_step": 6, "group_size": 8}, "optimization": {"minibatches": 4}}
        | algorithm(aggregation={"kind": "prompt_mean"}),
    ),
    (
        "divergence_never_differs",
        "algorithm.ratio.denominator",
        algorithm(ratio={"level": "token"}, trust_region={"kind": "divergence"}),
    ),
    ("behaviour_truncated", "rollout.top_p", {"rollout": {"top_p": 0.9}} | algorithm(ratio=BEHAVIOUR)),
    (
        "behaviour_truncated",
        "rollout.top_k",
        {"rollout": {"top_k": 20}} | algorithm(ratio={"level": "token"}, correction={"kind": "truncate"}),
    ),
    ("kl_without_reference", "reference.source", algorithm(**KL)),
    ("reference_without_folder", "reference.path", {"reference": {"source": "path"}}),
    (
        "overlong_never_reached",
        "algorithm.sampling.overlong.limit",
        algorithm(sampling={"overlong": {"limit": 20480}}),
    ),
    (
        "overlong_buffer_too_wide",
        "algorithm.sampling.overlong.buffer",
        algorithm(sampling={"overlong": {"buffer": 99}}),
    ),
    ("thinking_over_response", "rollout.thinking_budget", {"rollout": {"thinking_budget": 64}}),
    ("devices_not_divided", "resources.tensor_parallel", {"resources": {"tensor_parallel": 2}}),
    ("no_training_data", "data.train", {"data": {"train": " "}}),
    ("bounds_crossed", "data.difficulty", {"data": {"train": "a@1", "difficulty": [0.9, 0.1]}}),
    ("no_evaluation_data", "evaluation.sets.0.dataset", one_set(dataset="")),
    ("name_taken", "evaluation.sets.0.name", one_set(name="train")),
    ("pass_at_k_over_n", "evaluation.sets.0.k", one_set(n=4, k=[1, 8])),
    (
        "same_name_twice",
        "evaluation.sets.1.name",
        {"evaluation": {"sets": [{"dataset": "a@1"}, {"dataset": "b@1"}]}},
    ),
]
REFUSED += [
    ("unavailable", "model.lora", {"model": {"lora": {}}}),
    ("unavailable", "data.difficulty", {"data": {"train": "a@1", "difficulty": [0.1, 0.9]}}),
    ("unavailable", "resources.staleness", {"resources": {"staleness": 8}}),
    ("unavailable", "resources.hosts", {"resources": {"hosts": 2}}),
]
NOTED = [
    ("untrained_without_warm_start", "warm_start", {"model": {"source": "tiny"}}),
    ("nothing_evaluated", "evaluation.sets", {"evaluation": {"sets": []}}),
    ("evaluated_on_training_data", "evaluation.sets.0.dataset", one_set(dataset="arithmetic@1")),
    ("never_off_policy", "algorithm.trust_region.kind", algorithm(**CLIPPED)),
    (
        "denominator_unread",
        "algorithm.ratio.denominator",
        algorithm(ratio={"level": "none", "denominator": "behaviour"}),
    ),
    ("weightless", "algorithm.regularizer.kl.coef", algorithm(regularizer={"kl": {"coef": 0.0}})),
    ("weightless", "algorithm.regularizer.entropy.coef", algorithm(regularizer={"entropy": {"coef": 0.0}})),
    ("weightless", "algorithm.sampling.overlong.factor", algorithm(sampling={"overlong": {"factor": 0.0}})),
    ("weightless", "algorithm.baseline.value_coef", algorithm(baseline={"kind": "critic_gae", "value_coef": 0})),
    (
        "critic_weight_forgotten",
        "algorithm.baseline.value_coef",
        algorithm(baseline={"kind": "critic_gae"}) | {"optimization": {"clip_norm": 0}},
    ),
    ("budget_without_interruption", "rollout.thinking_budget", {"rollout": {"thinking_budget": 32}}),
    ("critic_rate_unread", "optimization.critic_learning_rate", {"optimization": {"critic_learning_rate": 1e-4}}),
    (
        "ratio_in_the_reward",
        "algorithm.regularizer.kl.estimator",
        algorithm(regularizer={"kl": {"where": "reward", "estimator": "ratio_k3"}}),
    ),
    ("level_in_the_reward", "algorithm.regularizer.kl.level", algorithm(**REWARD_KL)),
    ("reference_unread", "reference.source", {"reference": {"source": "start"}}),
    ("refresh_unread", "reference.refresh_every", {"reference": {"refresh_every": 5}}),
    (
        "scope_of_one_step",
        "algorithm.aggregation.scope",
        algorithm(aggregation={"kind": "delta_l", "scope": "rollout_batch"}),
    ),
    (
        "all_wrong_filtered",
        "algorithm.scale.zero_success",
        algorithm(
            baseline={"kind": "group_mean"},
            scale={"kind": "group_mean_reward", "zero_success": "keep_minus_one"},
            sampling={"zero_variance_filter": True},
        ),
    ),
    ("warmup_over_budget", "optimization.warmup_steps", {"optimization": {"warmup_steps": 200}}),
    (
        "penalised_and_masked",
        "algorithm.sampling.truncated",
        algorithm(sampling={"overlong": {}, "truncated": "mask"}),
    ),
    ("same_sample_again", "evaluation.sets.0.n", one_set(temperature=0, n=4)),
    (
        "dual_under_the_band",
        "algorithm.trust_region.dual",
        algorithm(ratio={"level": "token"}, trust_region={"kind": "clip", "dual": 1.1}),
    ),
]


@pytest.mark.parametrize(("code", "path", "sections"), REFUSED, ids=[f"{code}-{path}" for code, path, _ in REFUSED])
def test_it_is_refused_beside_its_field(code: str, path: str, sections: dict) -> None:
    found = [refusal for refusal in refusals(run(sections)) if (refusal.code, refusal.path) == (code, path)]
    assert len(found) == 1 and reads_well(found[0].sentence)


@pytest.mark.parametrize(("code", "path", "sections"), NOTED, ids=[f"{code}-{path}" for code, path, _ in NOTED])
def test_it_is_pointed_out_beside_its_field(code: str, path: str, sections: dict) -> None:
    found = [note for note in pointless(run(sections)) if (note.code, note.path) == (code, path)]
    assert len(found) == 1 and reads_well(found[0].sentence)


def reads_well(sentence: str) -> bool:
    return len(sentence.split()) > 4 and sentence.endswith(".") and "{" not in sentence


def test_a_plain_run_with_data_is_not_refused() -> None:
    assert refusals(run({})) == []


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_starts_in_a_run_made_for_it(name: str) -> None:
    sections = {
        "algorithm": PRESETS[name].algorithm.model_dump(),
        "reference": {"source": "start"},
        "rollout": {"thinking_budget": 32} if name == "scalerl" else {},
    }
    assert refusals(run(sections)) == []


def test_what_transformers_reads_in_a_chat_template_is_not_refused() -> None:
    template = "{% for m in messages %}{% generation %}{{ m | tojson }}{% endgeneration %}{% break %}{% endfor %}"
    assert refusals(run({"model": {"chat_template": template + "{{ raise_exception('no') }}"}})) == []


def test_top_p_is_allowed_where_the_generator_s_probabilities_are_only_watched() -> None:
    assert refusals(run({"rollout": {"top_p": 0.9, "top_k": 5}} | algorithm(**CLIPPED))) == []


def explained(sections: dict) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        RunSpec.model_validate(sections)
    return [(refusal.path, refusal.sentence) for refusal in explain(caught.value)]


@pytest.mark.parametrize(
    ("sections", "path", "sentence"),
    [
        (
            {"optimization": {"learning_rate": 0}},
            "optimization.learning_rate",
            "Learning rate must be greater than 0; it is 0.",
        ),
        (
            {"optimization": {"learning_rate": float("nan")}},
            "optimization.learning_rate",
            "Learning rate must be a finite number; it is nan.",
        ),
        (
            {"rollout": {"group_size": "eight"}},
            "rollout.group_size",
            'Group size must be a whole number; it is "eight".',
        ),
        (
            {"algorithm": {"trust_region": {"kind": "clip", "low": -1}}},
            "algorithm.trust_region.low",
            "Low must be greater than 0; it is -1.",
        ),
        (
            {"algorithm": {"aggregation": {"kind": "delta_l", "length": "long"}}},
            "algorithm.aggregation.length",
            "Length must be a whole number or 'rollout.response_limit'; it is \"long\".",
        ),
        (
            {"evaluation": {"sets": [{"k": [0]}]}},
            "evaluation.sets.0.k.0",
            "k of pass@k must be at least 1; it is 0.",
        ),
        ({"nonsense": 1}, "nonsense", "Nonsense is not a setting of this version; remove it."),
        ({"algorithm": {"scale": {}}}, "algorithm.scale", "Scale needs a kind; say which one it is."),
    ],
)
def test_what_the_schema_refuses_is_explained(sections: dict, path: str, sentence: str) -> None:
    assert explained(sections) == [(path, sentence)]


def test_an_unknown_kind_is_answered_with_the_known_ones() -> None:
    ((path, sentence),) = explained({"algorithm": {"scale": {"kind": "foo"}}})
    assert path == "algorithm.scale" and "'group_std'" in sentence and sentence.endswith("it is foo.")
