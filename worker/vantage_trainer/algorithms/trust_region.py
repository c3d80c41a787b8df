"""How far a ratio may carry the policy: what multiplies the advantage, and where a gradient passes.

Shapes: _T one value per trained token. Comparisons are strict; nothing here but the clip's surrogate has a gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vantage_trainer.algorithms.tokens import Tokens
from vantage_trainer.composition import Algorithm, Clip, Divergence, NoTrustRegion, Truncate

TINY, REST = 1e-8, 1e-12


@dataclass(frozen=True)
class Trust:
    """`objective_T` times the advantage is maximised as it stands; None: `weight_T` multiplies the log-probability."""

    weight_T: Tensor
    keep_T: Tensor
    objective_T: Tensor | None = None
    flags: dict[str, Tensor] = field(default_factory=dict)


def trust(algorithm: Algorithm, ratio_T: Tensor, tokens: Tokens) -> Trust:
    """Apply the chosen trust region; `flags` are what the clip metrics count."""
    anchor_T = tokens.anchor_T(algorithm.ratio.denominator)
    return TRUST_REGIONS[algorithm.trust_region.kind](algorithm.trust_region, ratio_T, anchor_T, tokens)


def none(part: NoTrustRegion, ratio_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Trust:
    return Trust(ratio_T.detach(), torch.ones_like(ratio_T, dtype=torch.bool))


def clip(part: Clip, ratio_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Trust:
    """Stop at the band's edge where the advantage pushes out of it (PPO, arXiv:1707.06347; dual: arXiv:1912.09729)."""
    falling_T, rising_T = tokens.advantage_T < 0, tokens.advantage_T > 0
    low_T = falling_T & (ratio_T < 1 - part.low)
    high_T = rising_T & (ratio_T > 1 + part.high)
    dual_T = falling_T & (ratio_T > part.dual) if part.dual else torch.zeros_like(low_T)
    keep_T = ~(low_T | high_T | dual_T)
    edge_T = ratio_T.detach().clamp(1 - part.low, 1 + part.high)
    edge_T = torch.where(dual_T, part.dual or 0.0, edge_T)
    flags = {"clip/low": low_T, "clip/high": high_T, "clip/fraction": low_T | high_T, "clip/dual": dual_T}
    return Trust(ratio_T.detach() * keep_T, keep_T, torch.where(keep_T, ratio_T, edge_T), flags)


def truncate(part: Truncate, ratio_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Trust:
    """Cap the weight and keep every token's gradient (CISPO, arXiv:2506.13585); the cap is absolute."""
    weight_T = ratio_T.detach().clamp(part.floor, part.cap)
    cut_T = (ratio_T > part.cap) | (ratio_T < part.floor)
    return Trust(weight_T, torch.ones_like(cut_T), flags={"clip/truncated_weight": cut_T})


def divergence(part: Divergence, ratio_T: Tensor, anchor_T: Tensor, tokens: Tokens) -> Trust:
    """Block tokens that left the anchor further than allowed, in the direction the advantage pushes (DPPO)."""
    current_T, anchor_T = tokens.logp_T.detach(), anchor_T.detach()
    distance_T = _distance(part, anchor_T, current_T, tokens)
    up_T = (tokens.advantage_T > 0) & (current_T > anchor_T) & (distance_T > part.high)
    down_T = (tokens.advantage_T < 0) & (current_T < anchor_T) & (distance_T > part.low)
    keep_T = ~(up_T | down_T)
    cap = part.cap or torch.inf
    weight_T, cut_T = ratio_T.detach().clamp(max=cap) * keep_T, keep_T & (ratio_T > cap)
    return Trust(weight_T, keep_T, flags={"clip/masked": ~keep_T, "clip/truncated_weight": cut_T})


def _distance(part: Divergence, anchor_T: Tensor, current_T: Tensor, tokens: Tokens) -> Tensor:
    if part.form == "binary":
        return MEASURES[part.measure](anchor_T, current_T)
    assert tokens.behaviour_top_TK is not None and tokens.current_top_TK is not None, "the top tokens are needed"
    before_TS = _with_rest(anchor_T, tokens.behaviour_top_TK.detach())
    return TOP_MEASURES[part.measure](before_TS, _with_rest(current_T, tokens.current_top_TK.detach()))


def _with_rest(sampled_T: Tensor, top_TK: Tensor) -> Tensor:
    """Probabilities of the sampled token, the other likeliest ones and all the rest as one."""
    known_TS = torch.cat([sampled_T[:, None], top_TK], 1).exp()
    return torch.cat([known_TS, (1 - known_TS.sum(1, keepdim=True)).clamp(min=REST)], 1)


def top_total_variation(before_TS: Tensor, now_TS: Tensor) -> Tensor:
    return (before_TS - now_TS).abs().sum(1) / 2


def top_kullback_leibler(before_TS: Tensor, now_TS: Tensor) -> Tensor:
    """Tokens without probability before add nothing."""
    logs_TS = before_TS.clamp(min=REST).log() - now_TS.clamp(min=REST).log()
    return torch.where(before_TS > 0, before_TS * logs_TS, 0).sum(1)


def total_variation(anchor_T: Tensor, current_T: Tensor) -> Tensor:
    """|mu - pi| of the sampled token against all others."""
    return (anchor_T.exp() - current_T.exp()).abs()


def kullback_leibler(anchor_T: Tensor, current_T: Tensor) -> Tensor:
    """KL(mu || pi) of the sampled token against all others."""
    rest_anchor_T, rest_current_T = _rest(anchor_T), _rest(current_T)
    inside_T = anchor_T.exp() * (anchor_T - current_T)
    return inside_T + rest_anchor_T * (rest_anchor_T.log() - rest_current_T.log())


def _rest(logp_T: Tensor) -> Tensor:
    return (-torch.expm1(logp_T)).clamp(min=TINY)


MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"tv": total_variation, "kl": kullback_leibler}
TOP_MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"tv": top_total_variation, "kl": top_kullback_leibler}
TRUST_REGIONS: dict[str, Callable[..., Trust]] = {
    "none": none,
    "clip": clip,
    "truncate": truncate,
    "divergence": divergence,
}
