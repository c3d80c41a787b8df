"""What datasets and algorithms may be called."""

from pydantic import TypeAdapter, ValidationError
from vantage_trainer.spec import Name

NAME = TypeAdapter(Name)
SENTENCE = "A name starts with a letter or digit; then letters, digits, dots, dashes and underscores, 64 at most."


def checked_name(name: str) -> str:
    """A name as it may be stored. ValueError says what it may hold."""
    try:
        return NAME.validate_python(name.strip())
    except ValidationError:
        raise ValueError(SENTENCE) from None
