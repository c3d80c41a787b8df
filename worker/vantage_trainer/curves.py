"""What an algorithm does, as curves: computed by the very functions that train, never by a second copy of them.

Shapes: _T one value per token, _B per response, _K per number of right answers in a group, _P per success rate.
"""

from dataclasses import astuple, dataclass, replace
from itertools import product

import torch
from pydantic import JsonValue
from torch import Tensor

from vantage_trainer.algorithms.coefficient import coefficients
from vantage_trainer.algorithms.credit import credit
from vantage_trainer.algorithms.critic import token_credit
from vantage_trainer.algorithms.loss import loss
from vantage_trainer.algorithms.tokens import Tokens
from vantage_trainer.composition import Algorithm, Divergence

SIGNS = (1.0, -1.0)
ANCHORS = (0.02, 0.2, 0.7)  # probability of the token before the step; only a divergence asks for it
MISMATCHES = (1.0, 0.3, 4.0)  # trainer over generator before the step; only a correction asks for it
LARGEST_RATIO, EVENLY = 3.0, 0.01
ROUNDED = 4  # points of a curve that may differ by rounding alone: those on a bound
EMA, NUM_RATES = 0.5, 101
DIGITS = 6
LONGEST_GROUP = 256  # larger ones say nothing new and take a page's patience

Curves = dict[str, JsonValue]


def curves(algorithm: Algorithm, group_size: int, response_limit: int) -> Curves:
    """The three curves of a composition; raises ValueError with a sentence where the sizes have no meaning."""
    if not 2 <= group_size <= LONGEST_GROUP:
        raise ValueError(f"Curves need a group size between 2 and {LONGEST_GROUP}; it is {group_size}.")
    if not 1 <= response_limit <= 10**7:
        raise ValueError(f"Curves need a response limit between 1 and 10000000; it is {response_limit}.")
    return {
        "weight": weight_curve(algorithm),
        "advantage": advantage_curve(algorithm, group_size, response_limit),
        "coefficient": coefficient_curve(algorithm, group_size, response_limit),
    }


# What multiplies the advantage in the gradient, against the ratio


@dataclass(frozen=True)
class Situation:
    """A token: the sign of its advantage, its probability before the step, and trainer over generator there."""

    sign: float
    anchor: float
    mismatch: float


def ratios() -> Tensor:
    """Evenly over 0 to 3, and ever closer to 1, where sequence ratios are clipped; not on bounds as people set them."""
    near = torch.logspace(-5, -0.5, 120, dtype=torch.float64)
    even = torch.arange(EVENLY / 3, LARGEST_RATIO, EVENLY, dtype=torch.float64)
    return torch.cat([even, 1 - near, 1 + near]).unique()


def weight_curve(algorithm: Algorithm) -> Curves:
    ratio_T = ratios()
    places = [Situation(*place) for place in product(SIGNS, ANCHORS, MISMATCHES)]
    found = dict(zip(places, weights(algorithm, places, ratio_T), strict=True))
    anchors = ANCHORS if matters(found, "anchor") else ANCHORS[:1]
    mismatches = MISMATCHES if matters(found, "mismatch") else MISMATCHES[:1]
    lines: list[JsonValue] = [
        {
            "sign": place.sign,
            "anchor": place.anchor if len(anchors) > 1 else None,
            "mismatch": place.mismatch if len(mismatches) > 1 else None,
            "weight": numbers(weight_T),
        }
        for place, weight_T in found.items()
        if place.anchor in anchors and place.mismatch in mismatches
    ]
    return {"ratio": numbers(ratio_T), "lines": lines}


def matters(found: dict[Situation, Tensor], name: str) -> bool:
    """Tell whether situations that differ in one thing alone have other weights, by more than rounding at a bound."""
    by_rest: dict[Situation, Tensor] = {}
    for place, weight_T in found.items():
        first_T = by_rest.setdefault(replace(place, **{name: 0.0}), weight_T)
        both_T = first_T.isfinite() & weight_T.isfinite()
        if (~torch.isclose(first_T[both_T], weight_T[both_T])).sum() > ROUNDED:
            return True
    return False


def weights(algorithm: Algorithm, places: list[Situation], ratio_T: Tensor) -> Tensor:
    """The weight of a token in each situation and at each ratio; NaN where its probability would be above 1. -> (S, T)

    Every token is a response of its own, so that the ratio of a response is that of its token.
    """
    sign_S1, anchor_S1, mismatch_S1 = torch.tensor([astuple(place) for place in places], dtype=ratio_T.dtype).T[
        ..., None
    ]
    shape = (len(places), len(ratio_T))
    probability_ST = anchor_S1 * ratio_T
    below_ST, shift_ST = anchor_S1.log().expand(shape), mismatch_S1.log().expand(shape)
    is_behaviour = algorithm.ratio.denominator == "behaviour"
    logp_T = probability_ST.log().clamp(max=0).flatten()
    tokens = Tokens(
        logp_T=logp_T,
        old_logp_T=(below_ST + shift_ST if is_behaviour else below_ST).flatten(),
        behaviour_logp_T=(below_ST if is_behaviour else below_ST - shift_ST).flatten(),
        advantage_T=sign_S1.expand(shape).flatten(),
        coef_T=torch.ones_like(logp_T),
        mask_T=torch.ones_like(logp_T, dtype=torch.bool),
        response_T=torch.arange(len(logp_T)),
        ref_logp_T=logp_T,
        entropy_T=torch.zeros_like(logp_T),
    )
    weight_ST = loss(of_two_outcomes(algorithm), tokens).weight_T.view(shape)
    return weight_ST.masked_fill(probability_ST > 1, torch.nan)


def of_two_outcomes(algorithm: Algorithm) -> Algorithm:
    """Look at a token against all others: there are no likeliest tokens to draw a divergence over."""
    part = algorithm.trust_region
    if not isinstance(part, Divergence) or part.form == "binary":
        return algorithm
    return algorithm.model_copy(update={"trust_region": part.model_copy(update={"form": "binary"})})


# The advantage of a right and of a wrong answer, against the group's success rate


def advantage_curve(algorithm: Algorithm, num: int, response_limit: int) -> Curves:
    """A batch with one group for each number of right answers, so that the batch's statistics mean something."""
    right_K, wrong_K = advantages(algorithm, num, response_limit)
    rate_P = torch.linspace(0, 1, NUM_RATES, dtype=torch.float64)
    return {
        "group_size": num,
        "rate": numbers(torch.arange(num + 1, dtype=torch.float64) / num),
        "right": numbers(right_K),
        "wrong": numbers(wrong_K),
        "p": numbers(rate_P),
        "slope": numbers(slope(right_K.nan_to_num(0), wrong_K.nan_to_num(0), rate_P)),
    }


def advantages(algorithm: Algorithm, num: int, response_limit: int) -> tuple[Tensor, Tensor]:
    """(right_K, wrong_K): NaN where no such answer is in the group, or the group takes no part."""
    right_KG = torch.arange(num) < torch.arange(num + 1)[:, None]
    reward_B, group_B = right_KG.double().flatten(), torch.arange(num + 1).repeat_interleave(num)
    given = credit(
        algorithm,
        reward_B,
        group_B,
        torch.ones_like(group_B),
        correct_B=right_KG.flatten(),
        truncated_B=torch.zeros_like(group_B, dtype=torch.bool),
        response_limit=response_limit,
        kl_B=torch.zeros_like(reward_B),
        ema=EMA,
    )
    advantage_B = given.advantage_B
    if algorithm.baseline.kind == "critic_gae":
        advantage_B = by_critic(algorithm, given.reward_B, group_B.double() / num)
    advantage_KG = torch.where(given.effective_B, advantage_B, torch.nan).view(num + 1, num)
    right_K, wrong_K = advantage_KG[:, 0].clone(), advantage_KG[:, -1].clone()
    right_K[0] = wrong_K[-1] = torch.nan
    return right_K, wrong_K


def by_critic(algorithm: Algorithm, reward_B: Tensor, value_B: Tensor) -> Tensor:
    """Answers of one token, judged by a critic that knows the success rate."""
    zero_B = torch.zeros_like(reward_B)
    index_B = torch.arange(len(reward_B))
    return token_credit(algorithm, reward_B, value_B, index_B, old_logp_T=zero_B, ref_logp_T=zero_B).advantage_T


def slope(right_K: Tensor, wrong_K: Tensor, rate_P: Tensor) -> Tensor:
    """h'(p): how much the expected gradient weighs that of the success rate (algorithms.md 4). -> (P,)

    Sum over the number s of right answers among the other N - 1 of its probability times the gap between an answer's
    advantage if right and if wrong.
    """
    num = len(right_K) - 1
    others_N = torch.arange(num, dtype=torch.float64)
    choose_N = torch.lgamma(torch.tensor(float(num))) - torch.lgamma(others_N + 1) - torch.lgamma(num - others_N)
    log_PN = torch.xlogy(others_N, rate_P[:, None]) + torch.xlogy(num - 1 - others_N, 1 - rate_P[:, None])
    return (choose_N + log_PN).exp() @ (right_K[1:] - wrong_K[:-1])


# The coefficient of a token, against the length of its response


def coefficient_curve(algorithm: Algorithm, num: int, response_limit: int) -> Curves:
    """One optimizer step of two prompts: responses of all lengths to one, at most a quarter as long to the other."""
    share_G = torch.arange(1, num + 1, dtype=torch.float64) / num
    length_PG = torch.stack([share_G * response_limit, share_G * response_limit / 4]).ceil().long()
    length_B, group_B = length_PG.flatten(), torch.arange(2).repeat_interleave(num)
    taking_part_B = torch.ones_like(group_B, dtype=torch.bool)
    coef_B = coefficients(algorithm.aggregation, length_B, group_B, taking_part_B, response_limit=response_limit)
    lines: list[JsonValue] = [
        {"prompt": name, "length": length_B[group_B == number].tolist(), "coef": numbers(coef_B[group_B == number])}
        for number, name in enumerate(("long", "short"))
    ]
    return {"lines": lines, "tokens": int(length_B.sum())}


def numbers(value_T: Tensor) -> list[JsonValue]:
    """Rounded for drawing; what is no number is null."""
    return [float(f"{value:.{DIGITS}g}") if value - value == 0 else None for value in value_T.tolist()]
