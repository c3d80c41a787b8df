"""Score 1 when the answer is the expected text, else 0."""

from pydantic import BaseModel, ConfigDict, Field


class Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    marker: str = Field("", description="Only what follows the last occurrence of this text counts; empty: all of it")
    ignore_case: bool = Field(False, description="Treat capital and small letters alike")


def score(parameters: Parameters, text: str, answer: str) -> float:
    """Compare after cutting white space at both ends; a missing marker scores 0."""
    if parameters.marker:
        _, found, text = text.rpartition(parameters.marker)
        if not found:
            return 0.0
    given, wanted = text.strip(), answer.strip()
    return float(given.casefold() == wanted.casefold() if parameters.ignore_case else given == wanted)
