"""What a critic adds to a step: values before the update, one advantage per token, and metrics.

Shapes: _T one value per token of a response, or of all responses that take part, one after another.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vantage_trainer.algorithms.credit import Credit
from vantage_trainer.algorithms.critic import TokenCredit, explained_variance, token_credit
from vantage_trainer.composition import CriticGae
from vantage_trainer.critic import Critic, ValueUpdate
from vantage_trainer.minibatches import sampled, sequence_of
from vantage_trainer.run import Run
from vantage_trainer.sequences import Sequence

if TYPE_CHECKING:
    from vantage_trainer.loop import Step


@dataclass(frozen=True)
class Judgement:
    """One response as the critic sees it, sampled tokens alone."""

    advantage_T: Tensor
    value_T: Tensor
    return_T: Tensor

    def upon(self, sequence: Sequence) -> Sequence:
        spread_T = torch.zeros(len(sequence.response_ids), dtype=self.advantage_T.dtype)
        spread_T[sequence.mask_T] = self.advantage_T
        return replace(sequence, advantage=spread_T, value=self.value_T, target=self.return_T)


def criticise(
    run: Run, step: "Step", given: Credit, critic: Critic, old: list[Tensor] | None, ref: list[Tensor] | None
) -> Credit:
    """Spread the rewards over tokens, into `step.judged`; in the answer a response has its mean advantage."""
    chosen = given.effective_B.nonzero().flatten().tolist()
    if not chosen:
        return given
    run.phase("criticising")
    began = time.perf_counter()
    responses = [step.responses[index] for index in chosen]
    values = critic.values([sequence_of(index, response) for index, response in enumerate(responses)])
    lengths = [response.num_trained for response in responses]
    value_T = sampled(responses, values).double()
    found = token_credit(
        run.spec.algorithm,
        given.reward_B[chosen],
        value_T,
        torch.repeat_interleave(torch.arange(len(chosen)), torch.tensor(lengths)),
        old_logp_T=torch.zeros_like(value_T) if old is None else sampled(responses, [old[i] for i in chosen]).double(),
        ref_logp_T=None if ref is None else sampled(responses, [ref[i] for i in chosen]).double(),
    )
    pieces = zip(*(each.split(lengths) for each in (found.advantage_T, value_T, found.return_T)), strict=True)
    step.judged = {index: Judgement(*piece) for index, piece in zip(chosen, pieces, strict=True)}
    step.foreseen = _foreseen(found, value_T)
    step.seconds["train"] += time.perf_counter() - began
    mean_B = torch.zeros_like(given.advantage_B)
    mean_B[chosen] = torch.stack([step.judged[index].advantage_T.mean() for index in chosen]).to(mean_B)
    return replace(given, advantage_B=mean_B)


def update_critic(run: Run, step: "Step", batch: list[Sequence]) -> list[ValueUpdate]:
    """Let the critic, where there is one, learn from the batch that the policy has just learned from."""
    part, critic = run.spec.algorithm.baseline, run.policy.critic
    if critic is None or not isinstance(part, CriticGae):
        return []
    return [critic.update(batch, step.critic_lr, part)]


def metrics(step: "Step") -> dict[str, float]:
    """Sums over all optimizer steps of the batch; the gradient's norm is the largest of them."""
    updates = step.value_updates
    if not updates:
        return {}
    tokens = sum(update.num_tokens for update in updates)
    return step.foreseen | {
        "critic/loss": math.fsum(update.loss for update in updates) / len(updates),
        "critic/clip_fraction": sum(update.num_clipped for update in updates) / tokens,
        "critic/grad_norm": max(update.grad_norm for update in updates),
        "critic/lr": step.critic_lr,
    }


def _foreseen(found: TokenCredit, value_T: Tensor) -> dict[str, float]:
    """How well the values before the update foresee the returns."""
    values = {"critic/value_mean": float(value_T.mean()), "critic/return_mean": float(found.return_T.mean())}
    explained = float(explained_variance(value_T, found.return_T))
    return values | ({"critic/explained_variance": explained} if math.isfinite(explained) else {})
