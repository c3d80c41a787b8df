"""One step as its update saw it: of the inspected answers every token, with what the trust region did to it."""

from collections.abc import Iterator
from dataclasses import dataclass

from vantage_trainer.composition import Algorithm

from vantage.runs.models import Run, Sample
from vantage.text import showable

MOST_TOKENS = 2000  # of one answer on a page; the exported file holds all
VERDICTS = {
    "kept": ("Kept", "its gradient passes"),
    "low": ("Clipped below", "its probability fell too far in the pushed direction: no gradient"),
    "high": ("Clipped above", "its probability rose too far: no gradient"),
    "truncated": ("Truncated", "its weight is bounded, its gradient passes"),
    "masked": ("Not trained", "it takes no part in the loss"),
    "unknown": ("Not known", "the journal does not say"),
}
Column = list[float | None]


@dataclass(frozen=True)
class Token:
    """A token with the numbers of its update; None where the journal has none."""

    text: str
    ratio: float | None
    weight: float | None
    coef: float | None
    verdict: str

    @property
    def title(self) -> str:
        return VERDICTS[self.verdict][0]


@dataclass(frozen=True)
class Answer:
    """An inspected sample with its tokens."""

    sample: Sample
    tokens: list[Token]
    num_hidden: int

    @property
    def counts(self) -> list[tuple[str, str, str, int]]:
        """(verdict, title, meaning, how many) for each verdict that occurs."""
        found = [token.verdict for token in self.tokens]
        return [(one, *VERDICTS[one], found.count(one)) for one in VERDICTS if one in found]


def inspected(samples: list[Sample], algorithm: Algorithm) -> list[Answer]:
    """The answers whose tokens were stored."""
    return [answer(sample, algorithm) for sample in samples if texts(sample)]


def steps_inspected(run: Run) -> list[int]:
    """Steps of which some answers have tokens."""
    rows = Sample.objects.filter(run=run, tokens__isnull=False)
    return list(rows.order_by("step").values_list("step", flat=True).distinct())


def answer(sample: Sample, algorithm: Algorithm) -> Answer:
    tokens = list(tokens_of(sample, algorithm))
    return Answer(sample, tokens[:MOST_TOKENS], max(0, len(tokens) - MOST_TOKENS))


def tokens_of(sample: Sample, algorithm: Algorithm) -> Iterator[Token]:
    names = ("ratio", "weight", "coef", "keep")
    columns = (column(sample, name, len(texts(sample))) for name in names)
    for text, ratio, weight, coef, keep in zip(texts(sample), *columns, strict=True):
        yield Token(showable(text), ratio, weight, coef, verdict(algorithm, ratio, keep))


def texts(sample: Sample) -> list[str]:
    found = sample.tokens.get("text") if isinstance(sample.tokens, dict) else None
    return [str(one) for one in found] if isinstance(found, list) else []


def column(sample: Sample, name: str, length: int) -> Column:
    """An array of a sample, None for what is missing or no number: other people's code writes journals."""
    found = sample.tokens.get(name) if isinstance(sample.tokens, dict) else None
    values = [number(value) for value in found] if isinstance(found, list) else []
    return (values + [None] * length)[:length]


def number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def verdict(algorithm: Algorithm, ratio: float | None, keep: float | None) -> str:
    """What the trust region did to a token, from its ratio and whether its gradient passed."""
    if ratio is None or keep is None:
        return "unknown"
    if not keep:
        return "masked" if ratio == 1 else ("high" if ratio > 1 else "low")
    cap, floor = (getattr(algorithm.trust_region, name, None) for name in ("cap", "floor"))
    beyond = (cap is not None and ratio > cap) or (floor is not None and ratio < floor)
    return "truncated" if beyond else "kept"
