"""An algorithm's objective as equations with its own numbers, composed from its parts: `formula(algorithm)`."""

from collections.abc import Sequence

from vantage_trainer.composition import Algorithm, CriticGae

from vantage.algorithms.formula import advantage, kl, rewards, total, weight
from vantage.algorithms.formula.kl import in_loss, kl_letter, of_entropy
from vantage.algorithms.formula.letters import IT, LENGTH, Line
from vantage.algorithms.formula.mathml import Math, equation, fenced, frac, mi, minus, mo, num, plus, product, row, sub


def formula(algorithm: Algorithm, response_limit: int | None = None) -> Sequence[Line]:
    """The loss first, then every letter in it; a part that is not used does not appear."""
    found = [loss(algorithm), *critic_loss(algorithm)]
    for part in (advantage, rewards, weight, kl, total):
        found += part.lines(algorithm)
    return found + ([total.limit_line(response_limit)] if total.uses_limit(algorithm) else [])


def loss(algorithm: Algorithm) -> Line:
    says = f"The loss, {total.COUNTED[algorithm.aggregation.kind]}"
    whole = row(mo("−"), total.summed(algorithm, bracket(algorithm)))
    if isinstance(algorithm.baseline, CriticGae):
        whole = plus(whole, product(num(algorithm.baseline.value_coef), sub(mi("ℒ"), mi("V"))))
    return Line("aggregation", says, equation(row(mi("ℒ"), fenced(mi("θ"))), whole))


def critic_loss(algorithm: Algorithm) -> list[Line]:
    part = algorithm.baseline
    if not isinstance(part, CriticGae):
        return []
    whole = total.summed(algorithm, rewards.value_error(part))
    return [Line("baseline", "The critic's own loss", equation(sub(mi("ℒ"), mi("V")), whole))]


def bracket(algorithm: Algorithm) -> Math:
    """What is added for each token: the surrogate, less the divergence, plus the entropy."""
    whole = weight.surrogate(algorithm)
    if found := in_loss(algorithm):
        once = found.level == "sequence" and not weight.averages(algorithm)
        cost = product(*([frac(num(1), LENGTH)] if once else []), kl_letter(found))
        whole = minus(whole, product(num(found.coef), cost))
    if entropy := of_entropy(algorithm):
        whole = plus(whole, product(num(entropy.coef), sub(mi("H"), IT)))
    is_sum = in_loss(algorithm) is not None or of_entropy(algorithm) is not None
    return fenced(whole, left="[", right="]") if is_sum else whole
