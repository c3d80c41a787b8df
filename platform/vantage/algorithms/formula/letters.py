"""The letters of a formula: one meaning each, everywhere."""

from dataclasses import dataclass

from vantage_trainer.composition import Algorithm

from vantage.algorithms.formula.mathml import BAR, Math, fenced, mi, mo, named, num, over, row, sub, upright

RESPONSE, J, T, G, B = mi("i"), mi("j"), mi("t"), mi("g"), mi("B")
SEPARATOR = mo("\u2063")  # invisible comma between two indices
IT = row(RESPONSE, SEPARATOR, T)
IN_GROUP = row(J, mo("∈"), G)
LENGTH, LENGTH_J = sub(mi("L"), RESPONSE), sub(mi("L"), J)
RESPONSE_LIMIT = mi("M")
POLICIES = {"old": upright("old"), "behaviour": mi("μ"), "ref": upright("ref"), "current": mi("θ")}


@dataclass(frozen=True)
class Line:
    """One equation of a formula: what it is about (the part of the form), in words, and in mathematics."""

    part: str
    says: str
    math: Math


def policy(name: str) -> Math:
    """The probability that a policy gives to the token."""
    return row(sub(mi("π"), POLICIES[name]), fenced(sub(mi("y"), IT)))


def log(inner: Math) -> Math:
    return named("log", inner)


def logp(name: str) -> Math:
    return log(policy(name))


def stopped(inner: Math) -> Math:
    """A weight through which no gradient passes."""
    return row(upright("sg"), mo("\u2061"), fenced(inner, left="[", right="]"))


def per_token(algorithm: Algorithm) -> bool:
    """Tell whether every token has an advantage of its own."""
    return algorithm.baseline.kind == "critic_gae"


def advantage(algorithm: Algorithm) -> Math:
    return sub(mi("A"), IT if per_token(algorithm) else RESPONSE)


def reward_changes(algorithm: Algorithm) -> list[str]:
    """What changes the verifier's reward before it is compared, in the order in which that happens."""
    sampling, kl = algorithm.sampling, algorithm.regularizer.kl
    costs = kl is not None and kl.where == "reward" and kl.coef != 0
    found = {
        "truncated": sampling.truncated == "zero_reward",
        "overlong": sampling.overlong is not None and sampling.overlong.factor != 0,
        "kl": costs and not per_token(algorithm),
    }
    return [name for name, holds in found.items() if holds]


def reward_letter(algorithm: Algorithm) -> Math:
    return mi("R") if reward_changes(algorithm) else mi("r")


def reward(algorithm: Algorithm, index: Math = RESPONSE) -> Math:
    return sub(reward_letter(algorithm), index)


def mean_reward(algorithm: Algorithm, index: Math = G) -> Math:
    return sub(over(reward_letter(algorithm), BAR), index)


def ratio(algorithm: Algorithm) -> Math:
    """The ratio that the trust region sees."""
    return sub(mi("ρ"), IT) if algorithm.ratio.level == "token" else sub(mi("s"), RESPONSE)


def length(given: int | str) -> Math:
    """A constant length: a number, or the run's response limit."""
    return num(given) if isinstance(given, int) else RESPONSE_LIMIT
