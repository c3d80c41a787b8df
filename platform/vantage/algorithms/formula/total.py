"""How the terms of all tokens add up to a loss: aggregation, and which responses and prompts take part."""

from collections.abc import Callable, Iterator

from vantage_trainer.composition import Algorithm, DeltaL, SequenceMeanTokenSumNorm

from vantage.algorithms.formula.letters import (
    IN_GROUP,
    LENGTH,
    LENGTH_J,
    RESPONSE,
    RESPONSE_LIMIT,
    B,
    G,
    J,
    Line,
    T,
    length,
    reward,
)
from vantage.algorithms.formula.mathml import (
    Math,
    big,
    call,
    equation,
    frac,
    indicator,
    mi,
    mo,
    num,
    product,
    row,
    sub,
    sup,
    words,
)

SUM_I, SUM_T = big("∑", RESPONSE), big("∑", T)
ALL_TOKENS = row(big("∑", J), LENGTH_J)


def summed(algorithm: Algorithm, term: Math) -> Math:
    """The sum over all tokens of the step, each with its coefficient."""
    return row(AGGREGATIONS[algorithm.aggregation.kind](algorithm), SUM_T, term)


def token_mean(algorithm: Algorithm) -> Math:
    return row(frac(num(1), ALL_TOKENS), SUM_I)


def mean_of_means(algorithm: Algorithm) -> Math:
    return row(frac(num(1), B), SUM_I, frac(num(1), LENGTH))


def mean_of_sums(algorithm: Algorithm) -> Math:
    return row(frac(num(1), B), SUM_I)


def over_constant(algorithm: Algorithm) -> Math:
    part = algorithm.aggregation
    assert isinstance(part, SequenceMeanTokenSumNorm)
    return row(frac(num(1), product(B, mo("·"), length(part.length))), SUM_I)


def mean_over_prompts(algorithm: Algorithm) -> Math:
    tokens = row(big("∑", IN_GROUP), LENGTH_J)
    return row(frac(num(1), mi("P")), big("∑", G), frac(num(1), tokens), big("∑", row(RESPONSE, mo("∈"), G)))


def by_length(algorithm: Algorithm) -> Math:
    part = algorithm.aggregation
    assert isinstance(part, DeltaL)
    power = row(mo("−"), num(part.alpha))
    every = row(big("∑", row(J, mo("∈"), words("step"))), sup(LENGTH_J, power))
    if part.scope == "rollout_batch":
        mean = sub(words("mean"), row(J, mo("∈"), words("batch")))
        every = product(B, row(mean, sup(LENGTH_J, power)))
    return row(frac(num(1), length(part.length)), SUM_I, frac(sup(LENGTH, power), every))


AGGREGATIONS: dict[str, Callable[[Algorithm], Math]] = {
    "token_mean": token_mean,
    "sequence_mean_token_mean": mean_of_means,
    "sequence_mean_token_sum": mean_of_sums,
    "sequence_mean_token_sum_norm": over_constant,
    "prompt_mean": mean_over_prompts,
    "delta_l": by_length,
}
COUNTED = {
    "token_mean": "over all trained tokens of the step, each weighing the same",
    "sequence_mean_token_mean": "over B responses of L trained tokens, each response weighing the same",
    "sequence_mean_token_sum": "over B responses, the tokens of a response adding up",
    "sequence_mean_token_sum_norm": "over B responses and a length that never changes",
    "prompt_mean": "over P prompts, each weighing the same whatever its responses' lengths",
    "delta_l": "over responses weighted by a power of their length",
}


def lines(algorithm: Algorithm) -> Iterator[Line]:
    """What is demanded of the prompts and responses in the sums."""
    sampling = algorithm.sampling
    if sampling.zero_variance_filter:
        apart = equation(extreme("max", algorithm), extreme("min", algorithm), ">")
        yield Line("sampling", "Only groups whose rewards differ take part", apart)
    if sampling.dynamic_sampling is not None:
        correct = row(big("∑", IN_GROUP), indicator_of("right"))
        most = row(words(", of at most "), num(sampling.dynamic_sampling.max_batches), words(" batches"))
        within = row(num(0), mo("<"), correct, mo("<"), sub(mi("N"), G), most)
        yield Line("sampling", "Sampled until enough groups have right and wrong answers", within)
    if sampling.truncated == "mask":
        yield Line(
            "sampling", "Responses cut at the limit take no part", row(RESPONSE, mo("∉"), words("cut at the limit"))
        )
    yield from of_prompts(algorithm)


def of_prompts(algorithm: Algorithm) -> Iterator[Line]:
    solved, pause = algorithm.sampling.no_positive_resampling, algorithm.sampling.interruption
    if solved is not None:
        rate = equation(sub(mi("p"), G), num(solved.threshold), "<")
        yield Line("sampling", "Only prompts whose success rate at their last visit was lower", rate)
    if pause is not None:
        budget = mi("Z")
        bounds = (product(num(bound), mo("·"), budget) for bound in (pause.min_fraction, pause.max_fraction))
        drawn = equation(sub(mi("z"), RESPONSE), call("uniform", *bounds), "∼")
        yield Line("sampling", "Thinking ends here, of a budget of Z; what is inserted is not trained", drawn)


def extreme(name: str, algorithm: Algorithm) -> Math:
    return row(big(name, IN_GROUP), reward(algorithm, J))


def indicator_of(text: str) -> Math:
    return indicator(row(J, words(f" {text}")))


def uses_limit(algorithm: Algorithm) -> bool:
    """Tell whether the run's response limit stands in the formula."""
    overlong = algorithm.sampling.overlong
    lengths = [getattr(algorithm.aggregation, "length", None), overlong.limit if overlong else None]
    return "rollout.response_limit" in lengths


def limit_line(response_limit: int | None) -> Line:
    value = words("the response limit") if response_limit is None else num(response_limit)
    return Line("aggregation", "The run's response limit, in tokens", equation(RESPONSE_LIMIT, value))
