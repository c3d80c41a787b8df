"""Estimates of the divergence from the reference, and what they and the entropy add to the loss."""

from collections.abc import Callable, Iterator

from vantage_trainer.composition import Algorithm, Entropy, Kl

from vantage.algorithms.formula.letters import IT, RESPONSE, Line, T, log, logp
from vantage.algorithms.formula.mathml import (
    Math,
    big,
    equation,
    fenced,
    frac,
    mi,
    minus,
    mo,
    num,
    plus,
    product,
    row,
    sub,
    sup,
)

D_TOKEN, D_RESPONSE = sub(mi("d"), IT), sub(mi("D"), RESPONSE)


def k1(d: Math) -> Math:
    return d


def k2(d: Math) -> Math:
    return product(frac(num(1), num(2)), sup(fenced(d), num(2)))


def k3(d: Math) -> Math:
    return plus(minus(sup(mi("e"), row(mo("−"), fenced(d))), num(1)), d)


ESTIMATES: dict[str, Callable[[Math], Math]] = {"k1": k1, "k2": k2, "k3": k3, "ratio_k3": k3}


def estimate(name: str, d: Math) -> Math:
    """An estimate of the divergence from a log-ratio; where the importance ratio is 1, ratio_k3 is k3."""
    return ESTIMATES[name](d)


def in_loss(algorithm: Algorithm) -> Kl | None:
    kl = algorithm.regularizer.kl
    return kl if kl is not None and kl.where == "loss" and kl.coef != 0 else None


def of_entropy(algorithm: Algorithm) -> Entropy | None:
    entropy = algorithm.regularizer.entropy
    return entropy if entropy is not None and entropy.coef != 0 else None


def kl_letter(kl: Kl) -> Math:
    return sub(mi("K"), RESPONSE if kl.level == "sequence" else IT)


def lines(algorithm: Algorithm) -> Iterator[Line]:
    if kl := in_loss(algorithm):
        letter = D_RESPONSE if kl.level == "sequence" else D_TOKEN
        drift = fenced(moved(algorithm, kl)) if kl.estimator == "ratio_k3" else None
        value = estimate(kl.estimator, letter)
        weighed = product(sup(mi("e"), drift), fenced(value)) if drift else value
        yield Line(
            "regularizer", f"The divergence from the reference, {kl.estimator}", equation(kl_letter(kl), weighed)
        )
        gap = minus(logp("current"), logp("ref"))
        meant = row(big("∑", T), fenced(gap)) if kl.level == "sequence" else gap
        yield Line("regularizer", "The log-ratio to the reference", equation(letter, meant))
    if of_entropy(algorithm):
        every = row(big("∑", mi("v")), product(sub(mi("p"), mi("v")), log(sub(mi("p"), mi("v")))))
        yield Line(
            "regularizer",
            "The entropy over all words that could follow",
            equation(sub(mi("H"), IT), row(mo("−"), every)),
        )


def moved(algorithm: Algorithm, kl: Kl) -> Math:
    """The log-ratio to the anchor policy whose gradient ratio_k3 carries too."""
    gap = minus(logp("current"), logp(algorithm.ratio.denominator))
    return row(big("∑", T), fenced(gap)) if kl.level == "sequence" else gap
