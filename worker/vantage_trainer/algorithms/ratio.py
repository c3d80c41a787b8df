"""The importance ratio of current to anchor policy, by level. Shapes: _T one value per trained token."""

from collections.abc import Callable

from torch import Tensor

from vantage_trainer.algorithms.tokens import Tokens, exp
from vantage_trainer.composition import Ratio


def importance(ratio: Ratio, tokens: Tokens) -> Tensor:
    """Ratio of every token with its gradient; at sequence level all tokens of a response share one."""
    return exp(LEVELS[ratio.level](tokens.logp_T, tokens.anchor_T(ratio.denominator), tokens))


def none(logp_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Tensor:
    return logp_T - logp_T.detach()


def token(logp_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Tensor:
    return logp_T - anchor_T


def sequence_geometric(logp_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Tensor:
    """Mean log-ratio of the response (GSPO, arXiv:2507.18071)."""
    return tokens.summed(logp_T - anchor_T) / tokens.length_T()


def sequence_product(logp_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Tensor:
    return tokens.summed(logp_T - anchor_T)


LEVELS: dict[str, Callable[[Tensor, Tensor, Tokens], Tensor]] = {
    "none": none,
    "token": token,
    "sequence_geometric": sequence_geometric,
    "sequence_product": sequence_product,
}
