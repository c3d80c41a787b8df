"""From rewards to advantages in mathematics: what a reward is compared with and divided by."""

from collections.abc import Callable, Iterator

from vantage_trainer.composition import Algorithm, BatchStd, BatchWhiten, Deviation, Ema, GroupMeanReward, GroupStd

from vantage.algorithms.formula.letters import (
    IN_GROUP,
    IT,
    RESPONSE,
    B,
    G,
    J,
    Line,
    advantage,
    mean_reward,
    per_token,
    reward,
    reward_letter,
)
from vantage.algorithms.formula.mathml import (
    BAR,
    Math,
    big,
    cases,
    equation,
    fenced,
    frac,
    mi,
    minus,
    mo,
    num,
    over,
    plus,
    product,
    root,
    row,
    sub,
    sup,
    words,
)

WHITEN_EPS = num(1e-8)
SIGMA = mi("σ")
CENTRED = mi("C")


def lines(algorithm: Algorithm) -> Iterator[Line]:
    """The advantage, then what it is made of."""
    yield Line("scale", ADVANTAGES[algorithm.scale.kind], equation(advantage(algorithm), scaled(algorithm)))
    yield from SPREADS.get(algorithm.scale.kind, nothing)(algorithm)
    yield from BASELINE_LINES.get(algorithm.baseline.kind, nothing)(algorithm)


def nothing(algorithm: Algorithm) -> Iterator[Line]:
    return iter(())


# What is compared


def centred(algorithm: Algorithm) -> Math:
    """Reward minus baseline, or the critic's estimate."""
    if per_token(algorithm):
        return sub(over(mi("A"), "^"), IT)
    return COMPARED[algorithm.baseline.kind](algorithm)


def less_batch_mean(algorithm: Algorithm) -> Math:
    return minus(reward(algorithm), over(reward_letter(algorithm), BAR))


def less_average(algorithm: Algorithm) -> Math:
    return minus(reward(algorithm), mi("b"))


def less_group_mean(algorithm: Algorithm) -> Math:
    return minus(reward(algorithm), mean_reward(algorithm))


def less_others(algorithm: Algorithm) -> Math:
    others = row(IN_GROUP, mo(","), J, mo("≠"), RESPONSE)
    mean = frac(num(1), minus(sub(mi("N"), G), num(1)))
    return minus(reward(algorithm), product(mean, row(big("∑", others), reward(algorithm, J))))


COMPARED: dict[str, Callable[[Algorithm], Math]] = {
    "none": reward,
    "batch_mean": less_batch_mean,
    "ema": less_average,
    "group_mean": less_group_mean,
    "group_leave_one_out": less_others,
}


def moving_average(algorithm: Algorithm) -> Iterator[Line]:
    part = algorithm.baseline
    assert isinstance(part, Ema)
    kept = product(num(part.momentum), mi("b"))
    new = product(fenced(minus(num(1), num(part.momentum))), over(reward_letter(algorithm), BAR))
    yield Line("baseline", "The moving average, changed after each batch", equation(mi("b"), plus(kept, new), "←"))


BASELINE_LINES: dict[str, Callable[[Algorithm], Iterator[Line]]] = {"ema": moving_average}

# What it is divided by


def scaled(algorithm: Algorithm) -> Math:
    return SCALED[algorithm.scale.kind](algorithm, centred(algorithm))


def unscaled(algorithm: Algorithm, inner: Math) -> Math:
    return inner


def by_deviation(algorithm: Algorithm, inner: Math, index: Math = G) -> Math:
    part = algorithm.scale
    assert isinstance(part, Deviation)
    deviation = sub(SIGMA, index)
    return frac(inner, plus(deviation, num(part.std_eps)) if part.std_eps else deviation)


def by_batch_deviation(algorithm: Algorithm, inner: Math) -> Math:
    return by_deviation(algorithm, sub(CENTRED, RESPONSE), CENTRED)


def whitened(algorithm: Algorithm, inner: Math) -> Math:
    return by_deviation(algorithm, minus(sub(CENTRED, RESPONSE), over(CENTRED, BAR)), CENTRED)


def whitened_over_tokens(algorithm: Algorithm, inner: Math) -> Math:
    one = inner if per_token(algorithm) else sub(CENTRED, RESPONSE)
    mean = sub(over(over(mi("A"), "^") if per_token(algorithm) else CENTRED, BAR), words("tokens"))
    return frac(minus(one, mean), root(plus(sub(sup(SIGMA, num(2)), words("tokens")), WHITEN_EPS)))


def by_success_rate(algorithm: Algorithm, inner: Math) -> Math:
    part = algorithm.scale
    assert isinstance(part, GroupMeanReward)
    mean = mean_reward(algorithm)
    failed = num({"zero": 0, "keep_minus_one": -1}[part.zero_success])
    return cases(
        (frac(inner, mean), row(words("if "), equation(mean, num(0), ">"))), (failed, words("if none is right"))
    )


SCALED: dict[str, Callable[[Algorithm, Math], Math]] = {
    "none": unscaled,
    "group_std": by_deviation,
    "batch_std": by_batch_deviation,
    "batch_whiten": whitened,
    "token_whiten": whitened_over_tokens,
    "group_mean_reward": by_success_rate,
}
ADVANTAGES = {
    "none": "The advantage",
    "group_std": "The advantage; 0 in a group whose rewards are all the same",
    "batch_std": "The advantage, over the deviation of the whole batch",
    "batch_whiten": "The advantage, whitened over the responses of the batch",
    "token_whiten": "The advantage, whitened over all trained tokens of the step",
    "group_mean_reward": "The advantage, over the group's success rate; rewards are 0 or 1",
}


def freedom(count: Math, ddof: int) -> Math:
    return minus(count, num(ddof)) if ddof else count


def spread_of_group(algorithm: Algorithm) -> Iterator[Line]:
    part = algorithm.scale
    assert isinstance(part, GroupStd)
    squares = sup(fenced(minus(reward(algorithm, J), mean_reward(algorithm))), num(2))
    mean = product(frac(num(1), freedom(sub(mi("N"), G), part.std_ddof)), row(big("∑", IN_GROUP), squares))
    yield Line("scale", "The deviation of a group of N answers", equation(sub(SIGMA, G), root(mean)))


def spread_of_batch(algorithm: Algorithm) -> Iterator[Line]:
    part = algorithm.scale
    assert isinstance(part, (BatchStd, BatchWhiten))
    squares = sup(fenced(minus(sub(CENTRED, J), over(CENTRED, BAR))), num(2))
    mean = product(frac(num(1), freedom(B, part.std_ddof)), row(big("∑", J), squares))
    yield from compared_line(algorithm)
    yield Line("scale", "The deviation over the B answers that take part", equation(sub(SIGMA, CENTRED), root(mean)))


def compared_line(algorithm: Algorithm) -> Iterator[Line]:
    yield Line(
        "baseline", "What the batch's deviation is taken of", equation(sub(CENTRED, RESPONSE), centred(algorithm))
    )


def spread_of_tokens(algorithm: Algorithm) -> Iterator[Line]:
    return nothing(algorithm) if per_token(algorithm) else compared_line(algorithm)


SPREADS: dict[str, Callable[[Algorithm], Iterator[Line]]] = {
    "group_std": spread_of_group,
    "batch_std": spread_of_batch,
    "batch_whiten": spread_of_batch,
    "token_whiten": spread_of_tokens,
}
