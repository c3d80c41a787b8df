"""What an optimizer step trains on: whole groups, each response with its coefficient from global counts.

Shapes: _B one value per response of the minibatch.
"""

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vantage_trainer.algorithms.coefficient import coefficients
from vantage_trainer.algorithms.credit import Credit
from vantage_trainer.rollout import Response
from vantage_trainer.run import Run
from vantage_trainer.sequences import Sequence

if TYPE_CHECKING:
    from vantage_trainer.loop import Step


def sequence_of(index: int, response: Response) -> Sequence:
    completion = response.completion
    return Sequence(
        response.problem.prompt_ids, completion.token_ids, completion.logps, index=index, injected=completion.injected
    )


def sampled(responses: list[Response], values: list[Tensor]) -> Tensor:
    """Put the values of all sampled tokens one after another, those of injected ones left out."""
    masks = [sequence_of(index, response).mask_T for index, response in enumerate(responses)]
    return torch.cat([value_T[mask_T] for value_T, mask_T in zip(values, masks, strict=True)])


def minibatches(run: Run, step: "Step", given: Credit, epoch: int) -> list[list[int]]:
    """Split the responses that take part by groups, in an order that depends on the seed and the step."""
    groups: dict[int, list[int]] = {}
    for index in given.effective_B.nonzero().flatten().tolist():
        groups.setdefault(step.responses[index].group, []).append(index)
    order = sorted(groups)
    random.Random(run.seed_of("minibatches", step.number, epoch)).shuffle(order)
    num = run.spec.optimization.minibatches
    parts = [[index for group in sorted(order[part::num]) for index in groups[group]] for part in range(num)]
    return [part for part in parts if part]


def weighted(
    run: Run, step: "Step", given: Credit, indices: list[int], old: list[Tensor] | None, ref: list[Tensor] | None
) -> list[Sequence]:
    """Give each response its coefficient, from counts over the whole minibatch, and what else its update needs."""
    chosen = [step.responses[index] for index in indices]
    coef_B = coefficients(
        run.spec.algorithm.aggregation,
        torch.tensor([response.num_trained for response in chosen]),
        torch.tensor([response.group for response in chosen]),
        torch.ones(len(chosen), dtype=torch.bool),
        response_limit=run.spec.rollout.response_limit,
        rollout_length_B=torch.tensor([r.num_trained for r in step.responses])[given.effective_B],
    )
    bare = [
        replace(
            sequence_of(index, step.responses[index]),
            advantage=float(given.advantage_B[index]),
            coef=float(coef),
            old=None if old is None else old[index],
            ref=None if ref is None else ref[index],
        )
        for index, coef in zip(indices, coef_B, strict=True)
    ]
    return [step.judged[sequence.index].upon(sequence) if step.judged else sequence for sequence in bare]
