"""What a step tells of an inspected answer's tokens."""

import torch
from vantage_trainer.algorithms.loss import loss
from vantage_trainer.policy import _inspected
from vantage_trainer.presets import PRESETS
from vantage_trainer.sequences import Sequence, tokens


def test_an_inspected_answer_carries_what_its_update_was_given() -> None:
    ref = torch.tensor([-1.0, -2.0])
    old = torch.tensor([-0.5, -0.7])
    batch = [
        Sequence([1], [5], [-0.5], 1.0, coef=0.5, old=old[:1], ref=ref[:1], index=0),
        Sequence([1], [5, 6], [-0.5, -0.7], -1.0, coef=0.25, old=old, ref=ref, index=1),
    ]
    logp_T = torch.tensor([-0.5, -0.5, -0.1])
    part = loss(PRESETS["grpo"].algorithm, tokens(batch, logp_T, None))
    found = _inspected(batch, part, logp_T, {1})
    assert set(found) == {1}
    assert found[1]["coef"] == [0.25, 0.25] and found[1]["ref"] == [-1.0, -2.0]
    assert len(found[1]["ratio"]) == len(found[1]["keep"]) == 2
