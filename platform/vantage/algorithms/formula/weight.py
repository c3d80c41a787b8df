"""What multiplies a token's advantage: ratio, trust region and the correction for the generator."""

from collections.abc import Callable, Iterator
from decimal import Decimal

from vantage_trainer.composition import Algorithm, Clip, Divergence, ImportanceCorrection, Truncate

from vantage.algorithms.formula.letters import (
    IT,
    LENGTH,
    POLICIES,
    RESPONSE,
    Line,
    T,
    advantage,
    log,
    logp,
    policy,
    ratio,
    stopped,
)
from vantage.algorithms.formula.mathml import (
    Math,
    big,
    call,
    cases,
    equation,
    exact,
    fenced,
    frac,
    indicator,
    mi,
    minus,
    mo,
    num,
    product,
    row,
    sub,
    sup,
    words,
)

AVERAGES_TOKENS = ("token_mean", "sequence_mean_token_mean", "prompt_mean")  # as in the trainer's coefficient.py
KEEP, DISTANCE = sub(mi("k"), IT), sub(mi("D"), IT)


def surrogate(algorithm: Algorithm) -> Math:
    """The term of one token, before its coefficient."""
    inner = TERMS[algorithm.trust_region.kind](algorithm)
    if algorithm.correction.kind == "none":
        return inner
    return product(correction_letter(algorithm), inner)


def averages(algorithm: Algorithm) -> bool:
    return algorithm.aggregation.kind in AVERAGES_TOKENS


def weighted(algorithm: Algorithm, weight: Math | None) -> Math:
    """A weight without gradient times the advantage times the log-probability."""
    factors = [] if weight is None else [stopped(weight)]
    if algorithm.ratio.level == "sequence_product" and averages(algorithm):
        factors.insert(0, LENGTH)  # a product counts once per response, so each token carries all of it
    return product(*factors, advantage(algorithm), logp("current"))


def free(algorithm: Algorithm) -> Math:
    return weighted(algorithm, None if algorithm.ratio.level == "none" else ratio(algorithm))


def clipped(algorithm: Algorithm) -> Math:
    part = algorithm.trust_region
    assert isinstance(part, Clip)
    value, a = ratio(algorithm), advantage(algorithm)
    low, high = (exact(1 + sign * Decimal(repr(bound))) for sign, bound in ((-1, part.low), (1, part.high)))
    whole = call("min", product(value, a), product(call("clip", value, low, high), a))
    if part.dual is not None:
        below = call("max", whole, product(num(part.dual), a))
        whole = fenced(cases((below, row(words("if "), equation(a, num(0), "<"))), (whole, words("else"))))
    if algorithm.ratio.level == "sequence_product" and not averages(algorithm):
        return product(frac(num(1), LENGTH), whole)
    return whole


def truncated(algorithm: Algorithm) -> Math:
    part = algorithm.trust_region
    assert isinstance(part, Truncate)
    value = call("max", ratio(algorithm), num(part.floor)) if part.floor else ratio(algorithm)
    return weighted(algorithm, call("min", value, num(part.cap)))


def masked(algorithm: Algorithm) -> Math:
    part = algorithm.trust_region
    assert isinstance(part, Divergence)
    value = ratio(algorithm) if part.cap is None else call("min", ratio(algorithm), num(part.cap))
    return weighted(algorithm, product(KEEP, value))


TERMS: dict[str, Callable[[Algorithm], Math]] = {
    "none": free,
    "clip": clipped,
    "truncate": truncated,
    "divergence": masked,
}


def lines(algorithm: Algorithm) -> Iterator[Line]:
    if algorithm.ratio.level != "none":
        says, power = LEVELS[algorithm.ratio.level]
        yield Line("ratio", says, equation(ratio(algorithm), power(algorithm.ratio.denominator, "current")))
    if isinstance(algorithm.trust_region, Divergence):
        yield from mask_lines(algorithm, algorithm.trust_region)
    if isinstance(algorithm.correction, ImportanceCorrection):
        yield from correction_lines(algorithm, algorithm.correction)


def of_token(below: str, above: str) -> Math:
    return frac(policy(above), policy(below))


def of_product(below: str, above: str) -> Math:
    return row(big("∏", T), of_token(below, above))


def of_mean(below: str, above: str) -> Math:
    return sup(fenced(of_product(below, above)), frac(num(1), LENGTH))


LEVELS: dict[str, tuple[str, Callable[[str, str], Math]]] = {
    "token": ("The ratio of a token", of_token),
    "sequence_geometric": ("The ratio of a response, per token", of_mean),
    "sequence_product": ("The ratio of a response", of_product),
}


def mask_lines(algorithm: Algorithm, part: Divergence) -> Iterator[Line]:
    anchor, a = algorithm.ratio.denominator, advantage(algorithm)

    def moved(pushed: str, way: str, bound: float) -> Math:
        return row(
            equation(a, num(0), pushed), mo(","), equation(policy("current"), policy(anchor), way), mo(","),
            equation(DISTANCE, num(bound), ">"),
        )  # fmt: skip

    blocked = [
        (num(0), row(words("if "), moved(">", ">", part.high))),
        (num(0), row(words("if "), moved("<", "<", part.low))),
    ]
    yield Line(
        "trust_region", "Which tokens keep their gradient", equation(KEEP, cases(*blocked, (num(1), words("else"))))
    )
    yield Line("trust_region", DISTANCES[part.measure], equation(DISTANCE, MEASURES[part.measure](anchor, part)))


DISTANCES = {"tv": "How far its probability moved: total variation", "kl": "How far its probability moved: KL"}


def outcomes(part: Divergence) -> Math:
    """What the sum runs over: the sampled token and all others, or the likeliest tokens and the rest."""
    sampled = row(sub(mi("y"), IT), mo(","), words("all others"))
    likeliest = row(sub(mi("y"), IT), mo(","), words("the likeliest "), num(part.k), mo(","), words("the rest"))
    return row(mi("v"), mo("∈"), fenced(sampled if part.form == "binary" else likeliest, left="{", right="}"))


def of(name: str) -> Math:
    return row(sub(mi("π"), POLICIES[name]), fenced(mi("v")))


def total_variation(anchor: str, part: Divergence) -> Math:
    gap = fenced(minus(of(anchor), of("current")), left="|", right="|")
    return product(frac(num(1), num(2)), row(big("∑", outcomes(part)), gap))


def kullback_leibler(anchor: str, part: Divergence) -> Math:
    return row(big("∑", outcomes(part)), product(of(anchor), log(frac(of(anchor), of("current")))))


MEASURES: dict[str, Callable[[str, Divergence], Math]] = {"tv": total_variation, "kl": kullback_leibler}

# The correction: trainer over generator at the start of the step, never a gradient
CORRECTION_LEVELS = {"token": "token", "sequence": "sequence_product", "geometric": "sequence_geometric"}


def correction_index(algorithm: Algorithm) -> Math:
    part = algorithm.correction
    assert isinstance(part, ImportanceCorrection)
    return IT if part.level == "token" else RESPONSE


def correction_letter(algorithm: Algorithm) -> Math:
    return sub(mi("c"), correction_index(algorithm))


def correction_lines(algorithm: Algorithm, part: ImportanceCorrection) -> Iterator[Line]:
    omega = sub(mi("ω"), correction_index(algorithm))
    weight = CORRECTIONS[algorithm.correction.kind](omega, part)
    yield Line("correction", "The correction, without gradient", equation(correction_letter(algorithm), weight))
    power = LEVELS[CORRECTION_LEVELS[part.level]][1]
    yield Line(
        "correction", "Trainer over generator, at the start of the step", equation(omega, power("behaviour", "old"))
    )


def bounded(omega: Math, part: ImportanceCorrection) -> Math:
    raised = call("max", omega, num(part.low)) if part.low else omega
    return raised if part.high is None else call("min", raised, num(part.high))


def inside(omega: Math, part: ImportanceCorrection) -> Math:
    low = [num(part.low), mo("≤")] if part.low else []
    high = [mo("≤"), num(part.high)] if part.high is not None else []
    return indicator(row(*low, omega, *high))


def masked_weight(omega: Math, part: ImportanceCorrection) -> Math:
    return product(omega, inside(omega, part))


CORRECTIONS: dict[str, Callable[[Math, ImportanceCorrection], Math]] = {
    "truncate": bounded,
    "mask": masked_weight,
    "reject": inside,
}
