"""The loss of a micro-batch: the sum of coefficient x term over its trained tokens. Nothing divides here.

With a clip the term is minus the ratio surrogate; with any other trust region it is -sg(weight) x advantage x logp.
Shapes: _T one value per token of the micro-batch, _N per trained token.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vantage_trainer.algorithms.coefficient import AVERAGES_TOKENS
from vantage_trainer.algorithms.correction import corrected
from vantage_trainer.algorithms.measure import Sums, clip_sums, mismatch_maxima, mismatch_sums, policy_sums
from vantage_trainer.algorithms.ratio import importance
from vantage_trainer.algorithms.regularizer import entropy_term, kl_term
from vantage_trainer.algorithms.tokens import Tokens
from vantage_trainer.algorithms.trust_region import Trust, trust
from vantage_trainer.composition import Algorithm


@dataclass(frozen=True)
class Loss:
    """`loss` has the gradient, in which `weight_T` multiplies the advantage; `keep_T` is the trust region's verdict."""

    loss: Tensor
    ratio_T: Tensor
    weight_T: Tensor
    keep_T: Tensor
    term_T: Tensor
    sums: Sums
    maxima: dict[str, Tensor]


def loss(algorithm: Algorithm, tokens: Tokens) -> Loss:
    """Add up a micro-batch; losses, gradients and sums of any split add to those of the whole step."""
    chosen = tokens.trained()
    ratio_N = importance(algorithm.ratio, chosen)
    verdict = trust(algorithm, ratio_N, chosen)
    lift_N, once_N = _lift(algorithm, chosen), _share(algorithm, chosen) / chosen.length_T()
    correction_N = corrected(algorithm.correction, chosen)
    product = algorithm.ratio.level == "sequence_product"
    term_N = _term(verdict, chosen, lift_N, once_N if product else torch.ones_like(once_N)) * correction_N
    total_N = term_N + kl_term(algorithm, chosen, once_N) + entropy_term(algorithm, chosen)
    return Loss(
        loss=(chosen.coef_T * total_N).sum(),
        ratio_T=tokens.restored(ratio_N.detach(), 1.0),
        weight_T=tokens.restored(verdict.weight_T * lift_N * correction_N, 0.0),
        keep_T=tokens.restored(verdict.keep_T, False),
        term_T=tokens.restored(term_N.detach(), 0.0),
        sums=clip_sums(algorithm.ratio, verdict.flags, chosen) | policy_sums(chosen) | mismatch_sums(chosen),
        maxima=mismatch_maxima(chosen),
    )


def _term(verdict: Trust, tokens: Tokens, lift_N: Tensor, once_N: Tensor) -> Tensor:
    if verdict.objective_T is None:
        return -verdict.weight_T * lift_N * tokens.advantage_T * tokens.logp_T
    return -verdict.objective_T * once_N * tokens.advantage_T


def _share(algorithm: Algorithm, tokens: Tokens) -> Tensor:
    """Times a token's coefficient: the coefficient of its sequence as one unit."""
    averages = algorithm.aggregation.kind in AVERAGES_TOKENS
    return tokens.length_T() if averages else torch.ones_like(tokens.logp_T)


def _lift(algorithm: Algorithm, tokens: Tokens) -> Tensor:
    """A product ratio counts once per sequence, so each of its tokens carries the sequence's coefficient."""
    if algorithm.ratio.level == "sequence_product":
        return _share(algorithm, tokens)
    return torch.ones_like(tokens.logp_T)
