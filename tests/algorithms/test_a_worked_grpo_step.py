"""The worked GRPO case through the functions the trainer calls: credit, coefficients, loss."""

import json
from pathlib import Path

import pytest
import torch
from vantage_trainer.algorithms.coefficient import coefficients
from vantage_trainer.algorithms.credit import credit
from vantage_trainer.algorithms.loss import loss
from vantage_trainer.algorithms.tokens import Tokens
from vantage_trainer.composition import Algorithm, Clip, GroupMean, GroupStd, Kl, Ratio, Regularizer
from vantage_trainer.composition import SequenceMeanTokenMean as SampleMean

CASE = json.loads((Path(__file__).parent / "cases" / "grpo.json").read_text())
GRPO = Algorithm(
    baseline=GroupMean(),
    scale=GroupStd(),
    ratio=Ratio(level="token"),
    trust_region=Clip(),
    aggregation=SampleMean(),
    regularizer=Regularizer(kl=Kl()),
)


def flat(name: str) -> torch.Tensor:
    return torch.tensor([entry for row in CASE["inputs"][name] for entry in row], dtype=torch.float64)


def test_the_case_comes_out_in_value_and_gradient() -> None:
    inputs, expected = CASE["inputs"], CASE["expected"]
    length_B = torch.tensor([len(row) for row in inputs["response_mask"]])
    group_B = torch.tensor(inputs["group"])
    reward_B = torch.tensor(inputs["reward"], dtype=torch.float64)
    never_B = torch.zeros(6, dtype=torch.bool)
    found = credit(GRPO, reward_B, group_B, length_B, correct_B=reward_B > 0.5, truncated_B=never_B, response_limit=64)
    coef_B = coefficients(GRPO.aggregation, length_B, group_B, found.effective_B, response_limit=64)
    response_T = torch.repeat_interleave(torch.arange(6), length_B)
    logp_T = flat("logp_new").requires_grad_()
    tokens = Tokens(
        logp_T=logp_T,
        old_logp_T=flat("logp_old"),
        behaviour_logp_T=flat("logp_old"),
        ref_logp_T=flat("logp_ref"),
        advantage_T=found.advantage_B[response_T],
        coef_T=coef_B[response_T],
        mask_T=torch.ones_like(response_T, dtype=torch.bool),
        response_T=response_T,
    )
    outcome = loss(GRPO, tokens)
    outcome.loss.backward()
    gradient = [entry for row in expected["kl"]["grad_logp_with_kl"] for entry in row]
    assert outcome.loss.item() == pytest.approx(expected["kl"]["loss_with_kl"], rel=1e-6)
    assert logp_T.grad.tolist() == pytest.approx(gradient, abs=1e-6)
