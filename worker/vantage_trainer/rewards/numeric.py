"""Score 1 when the last number of the text is the expected one, else 0."""

import re
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

# A minus after a digit or a bracket is a subtraction; commas count only between groups of three digits.
NUMBER = re.compile(r"(?:(?<![\d)\].])-)?(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)(?:\.\d+)?", re.ASCII)
MAX_CHARACTERS = 60


class Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    marker: str = Field("", description="Read the first number after the last occurrence of this text, such as ####")
    tolerance: FiniteFloat = Field(0.0, ge=0, description="Largest difference that still counts as equal")


def score(parameters: Parameters, text: str, answer: str) -> float:
    """Compare numbers, so that 7 and 7.0 are equal; an answer that is no number is an error, not a 0."""
    wanted = number(answer, last=True)
    if wanted is None:
        raise ValueError(f"the expected answer {answer[:40]!r} is not a number")
    given = number_after(parameters.marker, text)
    return float(given is not None and abs(given - wanted) <= Decimal(parameters.tolerance))


def number_after(marker: str, text: str) -> Decimal | None:
    """Return the last number, or the first one after the last marker."""
    if not marker:
        return number(text, last=True)
    _, found, rest = text.rpartition(marker)
    return number(rest, last=False) if found else None


def number(text: str, *, last: bool) -> Decimal | None:
    """Return the last (or first) number in the text; one too long to be an answer counts as none."""
    matches = NUMBER.findall(text)
    found = matches[-1 if last else 0] if matches else ""
    return Decimal(found.replace(",", "")) if 0 < len(found) <= MAX_CHARACTERS else None
