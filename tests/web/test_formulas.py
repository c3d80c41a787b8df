"""The objective in mathematics: well-formed, with the configuration's numbers, the same only where the maths is."""

import re
from collections.abc import Iterator
from typing import Literal, get_args, get_origin
from xml.etree import ElementTree

import pytest
from vantage.algorithms.formula.mathml import num
from vantage.algorithms.formula.objective import formula
from vantage_trainer import composition as parts
from vantage_trainer.composition import Algorithm, Part
from vantage_trainer.presets import PRESETS
from vantage_trainer.refusals import composition_refusals

GRPO = PRESETS["grpo"].algorithm
CHOICES = {
    "baseline": [parts.NoBaseline(), parts.BatchMean(), parts.Ema(), parts.CriticGae(), parts.GroupMean()]
    + [parts.GroupLeaveOneOut()],
    "scale": [parts.NoScale(), parts.GroupStd(), parts.BatchStd(), parts.BatchWhiten(), parts.TokenWhiten()]
    + [parts.GroupMeanReward()],
    "trust_region": [parts.NoTrustRegion(), parts.Clip(), parts.Clip(dual=3), parts.Truncate(), parts.Truncate(floor=1)]
    + [parts.Divergence(), parts.Divergence(measure="kl"), parts.Divergence(form="topk"), parts.Divergence(cap=20)],
    "aggregation": [parts.TokenMean(), parts.SequenceMeanTokenMean(), parts.SequenceMeanTokenSum(), parts.DeltaL()]
    + [parts.SequenceMeanTokenSumNorm(), parts.SequenceMeanTokenSumNorm(length=64), parts.PromptMean()]
    + [parts.DeltaL(scope="rollout_batch")],
    "ratio": [parts.Ratio(level=level) for level in ("none", "token", "sequence_geometric", "sequence_product")]
    + [parts.Ratio(denominator="behaviour")],
    "correction": [parts.NoCorrection(), parts.TruncateCorrection(low=0.5), parts.MaskCorrection()]
    + [parts.RejectCorrection(level=level) for level in ("token", "sequence", "geometric")],
    "regularizer": [parts.Regularizer(), parts.Regularizer(entropy=parts.Entropy(coef=0.01))]
    + [
        parts.Regularizer(kl=parts.Kl(where=where, estimator=name, level=level))
        for where in ("loss", "reward")
        for name in ("k1", "k2", "k3", "ratio_k3")
        for level in ("token", "sequence")
    ],
    "sampling": [
        parts.Sampling(),
        parts.Sampling(zero_variance_filter=True),
        parts.Sampling(dynamic_sampling=parts.DynamicSampling()),
        parts.Sampling(no_positive_resampling=parts.NoPositiveResampling()),
        parts.Sampling(overlong=parts.Overlong(buffer_fraction=0.3)),
        parts.Sampling(overlong=parts.Overlong(limit=512, buffer=64)),
        parts.Sampling(interruption=parts.Interruption()),
        parts.Sampling(truncated="mask"),
        parts.Sampling(truncated="zero_reward"),
    ],
}


def written(algorithm: Algorithm) -> str:
    return "\n".join(str(line.math) for line in formula(algorithm))


def numbers(algorithm: Algorithm) -> list[str]:
    return re.findall(r"<mn>(.*?)</mn>", written(algorithm))


def neighbours(start: Algorithm) -> Iterator[Algorithm]:
    """Every composition that differs from one in a single part."""
    for part, values in CHOICES.items():
        for value in values:
            yield start.model_copy(update={part: value, "preset": None})


def has_meaning(algorithm: Algorithm) -> bool:
    refused = {refusal.code for refusal in composition_refusals(algorithm)} - {"topk_unavailable"}
    return not refused


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_is_well_formed_and_begins_with_the_loss(name: str) -> None:
    lines = formula(PRESETS[name].algorithm)
    for line in lines:
        ElementTree.fromstring(f"<math>{line.math}</math>")
        assert line.says and line.part in Algorithm.model_fields
    assert lines[0].says.startswith("The loss, over")


def test_every_choice_of_every_part_is_among_those_tried() -> None:
    for part, tried in CHOICES.items():
        annotation = Algorithm.model_fields[part].annotation
        kinds = {getattr(one, "kind", None) for one in tried}
        offered = {member.model_fields["kind"].default for member in getattr(annotation, "__args__", ())}
        assert offered <= kinds, part


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_single_change_that_has_meaning_is_well_formed_and_shows(name: str) -> None:
    start = PRESETS[name].algorithm.model_copy(update={"preset": None})
    seen: dict[str, Algorithm] = {}
    for other in [start, *filter(has_meaning, neighbours(start))]:
        text = written(other)
        ElementTree.fromstring(f"<math>{text}</math>")
        known = seen.setdefault(text, other)
        assert canonical(known) == canonical(other), (known, other)


def canonical(algorithm: Algorithm) -> Algorithm:
    """The same mathematics in one spelling: options that nothing reads set to their defaults."""
    kl, ratio = algorithm.regularizer.kl, algorithm.ratio
    if kl is not None and kl.where == "reward":
        kl = kl.model_copy(update={"estimator": kl.estimator.replace("ratio_k3", "k3")})
        if kl.estimator == "k1" and algorithm.baseline.kind != "critic_gae":
            kl = kl.model_copy(update={"level": "token"})
    if ratio.level == "none" and not (kl and kl.estimator == "ratio_k3"):
        ratio = parts.Ratio(level="none")
    regularizer = algorithm.regularizer.model_copy(update={"kl": kl})
    return algorithm.model_copy(update={"ratio": ratio, "regularizer": regularizer})


def others(part: Part) -> Iterator[Part]:
    """A part with each of its options changed in turn, those of optional parts within it too."""
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        words = [word for one in (field.annotation, *get_args(field.annotation)) for word in literals(one)]
        values: list[object] = [word for word in words if word != value and name not in ("kind", "of")]
        if isinstance(value, Part):
            values = list(others(value))
        elif isinstance(value, bool):
            values = [not value]
        elif isinstance(value, (int, float)) and not words:
            values = [value * 0.5 if isinstance(value, float) else value + 3]
        yield from (part.model_copy(update={name: changed}) for changed in values)


def literals(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


SHOWN_IN = {  # where a part needs another one to mean something
    "baseline": Algorithm(ratio=parts.Ratio()),
    "trust_region": GRPO,
    "ratio": GRPO,
    "regularizer": PRESETS["ppo"].algorithm,
}
UNREAD = (  # options that another option of the same part switches off
    ("k", lambda part: getattr(part, "form", "") == "binary"),
    ("buffer_fraction", lambda part: getattr(part, "buffer", None) is not None),
)


def reads(before: Part, after: Part) -> bool:
    changed = {name for name in type(before).model_fields if getattr(before, name) != getattr(after, name)}
    inner = [
        (getattr(before, name), getattr(after, name)) for name in changed if isinstance(getattr(before, name), Part)
    ]
    if inner:
        return all(reads(*pair) for pair in inner)
    return not any(name in changed and is_off(before) for name, is_off in UNREAD)


@pytest.mark.parametrize("part", list(CHOICES))
def test_every_option_of_every_choice_stands_in_the_formula(part: str) -> None:
    start = SHOWN_IN.get(part, GRPO)
    for value in CHOICES[part]:
        before = start.model_copy(update={part: value})
        for other in others(value):
            after = start.model_copy(update={part: other})
            if reads(value, other) and canonical(before) != canonical(after):
                assert written(before) != written(after), (value, other)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"trust_region": parts.Clip(low=0.17, high=0.31)}, ["0.83", "1.31"]),
        ({"trust_region": parts.Clip(low=3e-4, high=4e-4)}, ["0.9997", "1.0004"]),
        ({"trust_region": parts.Clip(dual=3.5)}, ["3.5"]),
        ({"trust_region": parts.Truncate(cap=7, floor=0.125)}, ["7", "0.125"]),
        ({"trust_region": parts.Divergence(low=0.11, high=0.12, cap=13)}, ["0.11", "0.12", "13"]),
        ({"trust_region": parts.Divergence(form="topk", k=23)}, ["23"]),
        ({"scale": parts.GroupStd(std_eps=0.004, std_ddof=1)}, ["0.004"]),
        ({"baseline": parts.Ema(momentum=0.77)}, ["0.77"]),
        (
            {"baseline": parts.CriticGae(gamma=0.99, lam=0.93, value_clip=0.21, value_coef=0.13)},
            ["0.99", "0.93", "0.21"],
        ),
        ({"aggregation": parts.SequenceMeanTokenSumNorm(length=777)}, ["777"]),
        ({"aggregation": parts.DeltaL(alpha=0.6, length=888)}, ["0.6", "888"]),
        ({"correction": parts.MaskCorrection(low=0.45, high=5.5)}, ["0.45", "5.5"]),
        ({"regularizer": parts.Regularizer(kl=parts.Kl(coef=0.037), entropy=parts.Entropy(coef=0.0023))}, ["0.037"]),
        (
            {"sampling": parts.Sampling(overlong=parts.Overlong(limit=4096, buffer=512, factor=0.5))},
            ["4096", "512", "0.5"],
        ),
        ({"sampling": parts.Sampling(dynamic_sampling=parts.DynamicSampling(max_batches=9))}, ["9"]),
        ({"sampling": parts.Sampling(no_positive_resampling=parts.NoPositiveResampling(threshold=0.91))}, ["0.91"]),
        ({"sampling": parts.Sampling(interruption=parts.Interruption(min_fraction=0.81))}, ["0.81"]),
    ],
)
def test_the_numbers_are_those_of_the_configuration(change: dict, shown: list[str]) -> None:
    found = numbers(GRPO.model_copy(update=change))
    assert set(shown) <= set(found)


def test_what_is_not_used_does_not_appear() -> None:
    plain = written(PRESETS["reinforce"].algorithm)
    for letter in ("ρ", "σ", "sg", "ref", "clip", "ω", "H"):
        assert f">{letter}<" not in plain
    off = GRPO.model_copy(update={"regularizer": parts.Regularizer(kl=parts.Kl(coef=0), entropy=parts.Entropy(coef=0))})
    assert written(off) == written(GRPO.model_copy(update={"regularizer": parts.Regularizer()}))


def test_the_response_limit_of_a_run_stands_in_its_formula() -> None:
    lines = formula(PRESETS["dr_grpo"].algorithm, response_limit=1024)
    assert "<mn>1024</mn>" in str(lines[-1].math)
    assert "response limit" in str(formula(PRESETS["dr_grpo"].algorithm)[-1].math)


@pytest.mark.parametrize(
    ("value", "markup"),
    [
        (0.2, "<mn>0.2</mn>"),
        (5.0, "<mn>5</mn>"),
        (1e-6, "<msup><mn>10</mn><mn>−6</mn></msup>"),
        (3e-4, "<mrow><mn>3</mn><mo>×</mo><msup><mn>10</mn><mn>−4</mn></msup></mrow>"),
        (20480, "<mn>20480</mn>"),
        (-0.5, "<mn>−0.5</mn>"),
        (1e22, "<mn>10000000000000000000000</mn>"),
    ],
)
def test_a_number_is_written_as_it_was_given(value: float, markup: str) -> None:
    assert str(num(value)) == markup
