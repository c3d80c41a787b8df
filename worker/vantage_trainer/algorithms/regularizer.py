"""KL estimators and the terms they and the entropy add. Shapes: _T one value per trained token.

d = log pi - log pi_ref of the sampled token. As a loss k1 has no expected gradient, k3 that of KL(ref || pi), k2 and
ratio_k3 that of KL(pi || ref).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage_trainer.algorithms.segments import dense, total
from vantage_trainer.algorithms.tokens import CLAMP, Tokens, exp
from vantage_trainer.composition import Algorithm, Kl


def k1(d_T: Tensor, log_ratio_T: Tensor) -> Tensor:
    return d_T


def k2(d_T: Tensor, log_ratio_T: Tensor) -> Tensor:
    return d_T**2 / 2


def k3(d_T: Tensor, log_ratio_T: Tensor) -> Tensor:
    d_T = d_T.clamp(-CLAMP, CLAMP)
    return torch.expm1(-d_T) + d_T


def ratio_k3(d_T: Tensor, log_ratio_T: Tensor) -> Tensor:
    """Carry the importance ratio's gradient too (DeepSeek-V3.2)."""
    return exp(log_ratio_T) * k3(d_T, log_ratio_T)


ESTIMATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"k1": k1, "k2": k2, "k3": k3, "ratio_k3": ratio_k3}


def kl_term(algorithm: Algorithm, tokens: Tokens, once_T: Tensor) -> Tensor:
    """What the KL adds to each token's term; `once_T` makes a sequence-level estimate count once per sequence."""
    kl = algorithm.regularizer.kl
    if kl is None or kl.where != "loss" or kl.coef == 0:
        return torch.zeros_like(tokens.logp_T)
    assert tokens.ref_logp_T is not None, "the KL needs log-probabilities of the reference"
    d_T = tokens.logp_T - tokens.ref_logp_T
    log_ratio_T = tokens.logp_T - tokens.anchor_T(algorithm.ratio.denominator)
    if kl.level == "sequence":
        return kl.coef * once_T * ESTIMATORS[kl.estimator](tokens.summed(d_T), tokens.summed(log_ratio_T))
    return kl.coef * ESTIMATORS[kl.estimator](d_T, log_ratio_T)


def entropy_term(algorithm: Algorithm, tokens: Tokens) -> Tensor:
    """What the entropy bonus adds to each token's term."""
    entropy = algorithm.regularizer.entropy
    if entropy is None or entropy.coef == 0:
        return torch.zeros_like(tokens.logp_T)
    assert tokens.entropy_T is not None, "the bonus needs the entropy over the full vocabulary"
    return -entropy.coef * tokens.entropy_T


def kl_in_reward(kl: Kl, old_logp_T: Tensor, ref_logp_T: Tensor, response_T: Tensor, num_responses: int) -> Tensor:
    """Sum the estimate over each response, for the reward: no gradient. Trained tokens only. -> kl_B

    At the start of a step the ratio is 1, so ratio_k3 equals k3. At sequence level the estimate is of the summed d.
    """
    d_T = (old_logp_T - ref_logp_T).detach()
    if kl.level == "sequence":
        d_T, first_T = total(d_T, dense(response_T)), _first(response_T)
        return _by_response(ESTIMATORS[kl.estimator](d_T, torch.zeros_like(d_T)) * first_T, response_T, num_responses)
    return _by_response(ESTIMATORS[kl.estimator](d_T, torch.zeros_like(d_T)), response_T, num_responses)


def _by_response(value_T: Tensor, response_T: Tensor, num_responses: int) -> Tensor:
    return value_T.new_zeros(num_responses).index_add(0, response_T, value_T)


def _first(response_T: Tensor) -> Tensor:
    """1 at the first token of each response; responses lie one after another."""
    previous_T = torch.cat([response_T.new_full((1,), -1), response_T[:-1]])
    return (response_T != previous_T).double()
