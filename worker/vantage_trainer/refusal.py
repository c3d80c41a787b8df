"""What is refused before a run starts: a stable code, the field, its parameters and a sentence for people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vantage_trainer.composition import Algorithm
from vantage_trainer.spec import RunSpec

Parameter = str | int | float


@dataclass(frozen=True)
class Refusal:
    """`path` is the dotted name of the field beside which the sentence belongs; `parameters` fill a translation."""

    code: str
    path: str
    parameters: dict[str, Parameter]
    sentence: str


CompositionCheck = Callable[[Algorithm], Iterator[Refusal]]
RunCheck = Callable[[RunSpec], Iterator[Refusal]]


def refuse(code: str, path: str, sentence: str, **parameters: Parameter) -> Refusal:
    """Fill the sentence's braces with its parameters."""
    return Refusal(code, path, parameters, sentence.format(**parameters))
