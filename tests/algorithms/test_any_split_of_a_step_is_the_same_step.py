"""Micro-batches and ranks add up: losses, gradients and metric sums, whatever the split, order, labels or padding."""

import random
from collections.abc import Callable

import pytest
import torch
from vantage_trainer.algorithms.loss import loss
from vantage_trainer.algorithms.measure import added, metrics
from vantage_trainer.algorithms.tokens import Tokens
from vantage_trainer.composition import Algorithm
from vantage_trainer.objective import inspect
from vantage_trainer.presets import PRESETS
from vantage_trainer.refusals import composition_refusals

ALGORITHMS = [preset.algorithm for preset in PRESETS.values() if not composition_refusals(preset.algorithm)]
PRODUCT_RATIO = Algorithm.model_validate({"ratio": {"level": "sequence_product"}}).ratio
PRODUCT = ALGORITHMS[1].model_copy(update={"ratio": PRODUCT_RATIO})
ALL = [*ALGORITHMS, PRODUCT]
NAMES = [algorithm.preset for algorithm in ALGORITHMS] + ["product"]


def step_of(seed: int, num: int = 24, dtype: torch.dtype = torch.float64) -> Tokens:
    """A step of `num` responses with arbitrary coefficients: splitting is about sums alone."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (num,), generator=generator)
    response_T = torch.repeat_interleave(torch.arange(num), lengths)
    noise = torch.randn(4, len(response_T), generator=generator, dtype=torch.float64).to(dtype)
    old_T = -noise[0].abs() - 0.05
    return Tokens(
        logp_T=old_T + 0.3 * noise[1],
        old_logp_T=old_T,
        behaviour_logp_T=old_T + 0.1 * noise[2],
        ref_logp_T=old_T + 0.4 * noise[3],
        advantage_T=torch.randn(num, generator=generator, dtype=torch.float64).to(dtype)[response_T],
        coef_T=torch.rand(num, generator=generator, dtype=torch.float64).to(dtype)[response_T] / num,
        mask_T=torch.rand(len(response_T), generator=generator) < 0.9,
        response_T=response_T,
    )


def part_of(tokens: Tokens, chosen_T: torch.Tensor) -> Tokens:
    return Tokens(**{name: value if value is None else value[chosen_T] for name, value in vars(tokens).items()})


def gradient(algorithm: Algorithm, tokens: Tokens) -> tuple[float, torch.Tensor, dict[str, float]]:
    logp_T = tokens.logp_T.clone().requires_grad_()
    outcome = loss(algorithm, Tokens(**vars(tokens) | {"logp_T": logp_T}))
    (grad_T,) = torch.autograd.grad(outcome.loss, logp_T)
    return outcome.loss.item(), grad_T, metrics(outcome.sums, outcome.maxima)


@pytest.mark.parametrize("pieces", [1, 3, 8])
@pytest.mark.parametrize("algorithm", ALL, ids=NAMES)
def test_losses_gradients_and_sums_add_over_any_split(algorithm: Algorithm, pieces: int) -> None:
    whole = step_of(seed=pieces)
    value, grad_T, measured = gradient(algorithm, whole)
    owner = torch.randint(0, pieces, (24,), generator=torch.Generator().manual_seed(pieces))[whole.response_T]
    outcomes = [loss(algorithm, part_of(whole, owner == piece)) for piece in range(pieces)]
    assert sum(outcome.loss.item() for outcome in outcomes) == pytest.approx(value, rel=1e-12)
    for piece in range(pieces):
        part = part_of(whole, owner == piece)
        torch.testing.assert_close(gradient(algorithm, part)[1], grad_T[owner == piece], rtol=1e-12, atol=1e-15)
    maxima = {"mismatch/max_ratio": max(outcome.maxima["mismatch/max_ratio"] for outcome in outcomes)}
    assert metrics(added([outcome.sums for outcome in outcomes]), maxima) == pytest.approx(measured, rel=1e-9)


@pytest.mark.parametrize("algorithm", ALL, ids=NAMES)
def test_pad_width_and_pad_content_change_nothing_to_the_last_bit(algorithm: Algorithm) -> None:
    bare = step_of(seed=5, dtype=torch.float32)
    kept = part_of(bare, bare.mask_T)
    value, grad_T, measured = gradient(algorithm, kept)
    for content in (0.0, -3.0, torch.nan, torch.inf):
        filled = {name: bare_T.clone() for name, bare_T in vars(bare).items() if bare_T is not None}
        for name in ("logp_T", "old_logp_T", "behaviour_logp_T", "ref_logp_T", "advantage_T", "coef_T"):
            filled[name][~bare.mask_T] = content
        for mask_T in (filled["mask_T"], filled["mask_T"].long(), filled["mask_T"].double()):
            found = gradient(algorithm, Tokens(**filled | {"mask_T": mask_T}))
            assert found[0] == value and found[2] == measured
            assert torch.equal(found[1][bare.mask_T], grad_T) and not found[1][~bare.mask_T].any()


@pytest.mark.parametrize("algorithm", ALL, ids=NAMES)
def test_a_micro_batch_without_trained_tokens_gives_zero_with_a_gradient(algorithm: Algorithm) -> None:
    whole = step_of(seed=6, num=4)
    idle = Tokens(**vars(whole) | {"mask_T": torch.zeros_like(whole.mask_T)})
    for filler in (idle, part_of(whole, whole.response_T > 99)):
        value, grad_T, _ = gradient(algorithm, filler)
        assert value == 0 and not grad_T.any()


@pytest.mark.parametrize("algorithm", ALL, ids=NAMES)
def test_order_and_labels_of_the_responses_do_not_matter(
    algorithm: Algorithm, make_batch: Callable[[int], dict]
) -> None:
    inputs = make_batch(8)
    order = random.Random(8).sample(range(len(inputs["group"])), len(inputs["group"]))
    moved = {name: [rows[i] for i in order] for name, rows in inputs.items()}
    moved["group"] = [1000 - 13 * label for label in moved["group"]]
    here, there = inspect(algorithm, inputs, 64), inspect(algorithm, moved, 64)
    assert there["loss"] == pytest.approx(here["loss"], rel=1e-12, abs=1e-15)
    for found, i in zip(there["grad_logp"], order, strict=True):
        assert found == pytest.approx(here["grad_logp"][i], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("algorithm", ALL, ids=NAMES)
def test_float32_agrees_with_float64(algorithm: Algorithm) -> None:
    exact, rounded = step_of(seed=9), step_of(seed=9, dtype=torch.float32)
    wanted, found = gradient(algorithm, exact)[1], gradient(algorithm, rounded)[1]
    assert (found.double() - wanted).norm() <= 1e-5 * wanted.norm()
