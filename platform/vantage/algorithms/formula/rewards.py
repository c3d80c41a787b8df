"""What happens to a verifier's reward before it is compared, and the critic that spreads it over tokens."""

from collections.abc import Callable, Iterator

from vantage_trainer.composition import Algorithm, CriticGae, Kl, Overlong

from vantage.algorithms.formula.kl import estimate
from vantage.algorithms.formula.letters import (
    IT,
    LENGTH,
    RESPONSE,
    SEPARATOR,
    Line,
    T,
    length,
    logp,
    per_token,
    reward,
    reward_changes,
)
from vantage.algorithms.formula.mathml import (
    Math,
    big,
    call,
    equation,
    fenced,
    frac,
    indicator,
    mi,
    minus,
    mo,
    num,
    over,
    plus,
    product,
    row,
    sub,
    subsup,
    sup,
    upright,
    words,
)


def lines(algorithm: Algorithm) -> Iterator[Line]:
    """How the reward is changed, if it is; then the critic's recursion, if there is one."""
    if changes := reward_changes(algorithm):
        changed = sub(mi("r"), RESPONSE)
        for name in changes:
            changed = CHANGES[name](algorithm, changed)
        yield Line("sampling", "The reward that is compared", equation(reward(algorithm), changed))
    if per_token(algorithm):
        yield from critic(algorithm)


def zeroed(algorithm: Algorithm, before: Math) -> Math:
    return product(before, indicator(words("not cut at the limit")))


def penalised(algorithm: Algorithm, before: Math) -> Math:
    part = algorithm.sampling.overlong
    assert part is not None
    whole, buffer = length(part.limit), buffer_of(part)
    share = frac(minus(LENGTH, fenced(minus(whole, buffer))), buffer)
    return minus(before, product(num(part.factor), call("clip", share, num(0), num(1))))


def buffer_of(part: Overlong) -> Math:
    if part.buffer is not None:
        return num(part.buffer)
    return product(num(part.buffer_fraction), mo("·"), length(part.limit))


def less_kl(algorithm: Algorithm, before: Math) -> Math:
    kl = algorithm.regularizer.kl
    assert kl is not None
    return minus(before, product(num(kl.coef), cost_of_response(kl)))


def cost_of_response(kl: Kl) -> Math:
    """The estimate summed over tokens, or of the sum over tokens; of k1 the two are the same."""
    gap = minus(logp("old"), logp("ref"))
    summed = row(big("∑", T), fenced(gap))
    if kl.level == "sequence" and kl.estimator != "k1":
        return estimate(kl.estimator, summed)
    return row(big("∑", T), fenced(estimate(kl.estimator, gap)))


CHANGES: dict[str, Callable[[Algorithm, Math], Math]] = {"truncated": zeroed, "overlong": penalised, "kl": less_kl}
VALUE, ESTIMATE = mi("V"), over(mi("A"), "^")
LAST = indicator(equation(T, LENGTH))
LATER = row(RESPONSE, SEPARATOR, T, mo("+"), mi("l"))
NEXT = row(RESPONSE, SEPARATOR, T, mo("+"), num(1))


def old_value(index: Math) -> Math:
    return subsup(VALUE, index, upright("old"))


def critic(algorithm: Algorithm) -> Iterator[Line]:
    part = algorithm.baseline
    assert isinstance(part, CriticGae)
    decay = sup(fenced(product(num(part.gamma), mo("·"), num(part.lam))), mi("l"))
    summed = row(big("∑", row(mi("l"), mo("≥"), num(0))), decay, sub(mi("δ"), LATER))
    yield Line("baseline", "Estimated with the critic", equation(sub(ESTIMATE, IT), summed))
    error = minus(plus(sub(mi("R"), IT), product(num(part.gamma), mo("·"), old_value(NEXT))), old_value(IT))
    yield Line("baseline", "The critic's error; its value past the end is 0", equation(sub(mi("δ"), IT), error))
    yield Line("regularizer", "The reward of a token", equation(sub(mi("R"), IT), token_reward(algorithm)))
    yield Line("baseline", "What the critic learns", equation(over(sub(mi("V"), IT), "^"), target()))


def target() -> Math:
    return plus(sub(ESTIMATE, IT), old_value(IT))


def token_reward(algorithm: Algorithm) -> Math:
    kl = algorithm.regularizer.kl
    if kl is None or kl.where != "reward" or kl.coef == 0:
        return product(reward(algorithm), LAST)
    gap = minus(logp("old"), logp("ref"))
    if kl.level == "token":
        return minus(product(reward(algorithm), LAST), product(num(kl.coef), fenced(estimate(kl.estimator, gap))))
    summed = fenced(estimate(kl.estimator, row(big("∑", T), fenced(gap))))
    return product(fenced(minus(reward(algorithm), product(num(kl.coef), summed))), LAST)


def value_error(part: CriticGae) -> Math:
    """Half the larger squared error of the critic, of its value and of its value near the old one."""
    goal = over(sub(mi("V"), IT), "^")
    plain = sup(fenced(minus(sub(VALUE, IT), goal)), num(2))
    half = frac(num(1), num(2))
    if part.value_clip is None:
        return product(half, plain)
    around = [sign(old_value(IT), num(part.value_clip)) for sign in (minus, plus)]
    clipped = sup(fenced(minus(call("clip", sub(VALUE, IT), *around), goal)), num(2))
    return product(half, call("max", plain, clipped))
