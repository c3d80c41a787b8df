"""Credit from a critic: one advantage per token by generalised advantage estimation, and the critic's own loss.

Shapes: _T one value per trained token, responses one after another in a dense index; _B one per response; _BL padded.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vantage_trainer.algorithms.regularizer import ESTIMATORS
from vantage_trainer.algorithms.scale import WHITEN_EPS
from vantage_trainer.algorithms.segments import total
from vantage_trainer.composition import Algorithm, CriticGae, Kl


@dataclass(frozen=True)
class TokenCredit:
    """Advantages as the loss takes them, the returns the critic learns, and the rewards both come from."""

    advantage_T: Tensor
    return_T: Tensor
    reward_T: Tensor


def token_credit(
    algorithm: Algorithm,
    reward_B: Tensor,
    value_old_T: Tensor,
    response_T: Tensor,
    *,
    old_logp_T: Tensor,
    ref_logp_T: Tensor | None,
) -> TokenCredit:
    """Spread rewards over tokens (PPO, arXiv:1707.06347). Only trained tokens of responses that take part.

    reward_B: shaped reward without the KL. Returns use advantages before whitening; the value past the end is 0.
    """
    part = algorithm.baseline
    assert isinstance(part, CriticGae)
    reward_T = _token_reward(algorithm.regularizer.kl, reward_B, response_T, old_logp_T, ref_logp_T)
    advantage_T = gae(part, reward_T, value_old_T, response_T)
    whitened_T = whitened(advantage_T) if algorithm.scale.kind == "token_whiten" else advantage_T
    return TokenCredit(whitened_T, advantage_T + value_old_T, reward_T)


def gae(part: CriticGae, reward_T: Tensor, value_T: Tensor, response_T: Tensor) -> Tensor:
    """Run the recursion A_t = delta_t + gamma lam A_(t+1) backwards over every response at once."""
    if not len(reward_T):
        return reward_T
    place_T = torch.arange(len(response_T), device=response_T.device) - _first(response_T)
    shape = (int(response_T.max()) + 1, int(place_T.max()) + 2)
    reward_BL = reward_T.new_zeros(shape).index_put((response_T, place_T), reward_T)
    value_BL = value_T.new_zeros(shape).index_put((response_T, place_T), value_T)
    delta_BL = reward_BL + part.gamma * value_BL.roll(-1, 1) - value_BL
    advantage_BL = torch.zeros_like(delta_BL)
    for t in reversed(range(shape[1] - 1)):
        advantage_BL[:, t] = delta_BL[:, t] + part.gamma * part.lam * advantage_BL[:, t + 1]
    return advantage_BL[response_T, place_T]


def whitened(advantage_T: Tensor) -> Tensor:
    """Centre and scale over all trained tokens of the batch: (A - mean) / sqrt(var + 1e-8), ddof 1."""
    if len(advantage_T) < 2:
        return torch.zeros_like(advantage_T)
    return (advantage_T - advantage_T.mean()) / (advantage_T.var(correction=1) + WHITEN_EPS).sqrt()


def value_loss(part: CriticGae, value_T: Tensor, value_old_T: Tensor, return_T: Tensor, coef_T: Tensor) -> Tensor:
    """Sum coefficient x half the larger squared error, of the value and of the value clipped to its old one."""
    error_T, clipped_T = _errors(part, value_T, value_old_T, return_T)
    return (coef_T * torch.where(error_T >= clipped_T, error_T, clipped_T) / 2).sum()


def value_clipped(part: CriticGae, value_T: Tensor, value_old_T: Tensor, return_T: Tensor) -> Tensor:
    """Mark tokens whose value learns nothing: outside the band around its old one, and nearer to its return."""
    error_T, clipped_T = _errors(part, value_T.detach(), value_old_T, return_T)
    return error_T < clipped_T


def explained_variance(value_T: Tensor, return_T: Tensor) -> Tensor:
    """Share of the returns' variance that the values foresee, 1 at best; not finite where the returns do not vary."""
    value_T, return_T = value_T.double(), return_T.double()
    return 1 - (return_T - value_T).var(correction=0) / return_T.var(correction=0)


def _errors(part: CriticGae, value_T: Tensor, value_old_T: Tensor, return_T: Tensor) -> tuple[Tensor, Tensor]:
    """Square the distance to the return, of the value and of the value clipped to its old one."""
    error_T = (value_T - return_T) ** 2
    if part.value_clip is None:
        return error_T, error_T
    near_T = value_old_T + (value_T - value_old_T).clamp(-part.value_clip, part.value_clip)
    return error_T, (near_T - return_T) ** 2


def _token_reward(
    kl: Kl | None, reward_B: Tensor, response_T: Tensor, old_logp_T: Tensor, ref_logp_T: Tensor | None
) -> Tensor:
    """Put the reward on the last token, and the KL's cost on every token or, at sequence level, on the last."""
    last_T = torch.ones_like(response_T, dtype=torch.bool)
    last_T[:-1] = response_T[1:] != response_T[:-1]
    outcome_T = torch.where(last_T, reward_B[response_T], 0).to(old_logp_T.dtype)
    if kl is None or kl.where != "reward" or kl.coef == 0:
        return outcome_T
    assert ref_logp_T is not None, "the KL needs log-probabilities of the reference"
    d_T = (old_logp_T - ref_logp_T).detach()
    estimate = ESTIMATORS[kl.estimator]
    if kl.level == "token":
        return outcome_T - kl.coef * estimate(d_T, torch.zeros_like(d_T))
    return outcome_T - kl.coef * torch.where(last_T, estimate(total(d_T, response_T), torch.zeros_like(d_T)), 0)


def _first(response_T: Tensor) -> Tensor:
    """Position of the first token of the token's response."""
    counts_B = torch.bincount(response_T)
    return (counts_B.cumsum(0) - counts_B)[response_T]
