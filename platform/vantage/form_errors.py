"""Turn pydantic's errors into sentences that say what to change, each with the dotted path of its field."""

from collections.abc import Collection, Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

SENTENCES = {
    "missing": "Fill this in.",
    "int_parsing": "Enter a whole number.",
    "int_from_float": "Enter a whole number.",
    "int_type": "Enter a whole number.",
    "float_parsing": "Enter a number.",
    "float_type": "Enter a number.",
    "bool_parsing": "Switch this on or off.",
    "finite_number": "Enter a finite number; NaN and infinity are not allowed.",
    "greater_than": "Enter a number above {gt}.",
    "greater_than_equal": "Enter a number of at least {ge}.",
    "less_than": "Enter a number below {lt}.",
    "less_than_equal": "Enter a number of at most {le}.",
    "literal_error": "Choose one of: {expected}.",
    "union_tag_invalid": "Choose one of: {expected_tags}.",
    "union_tag_not_found": "Choose a kind.",
    "string_pattern_mismatch": "Start with a letter or digit; then letters, digits, dots, dashes and underscores, "
    "64 at most.",
    "string_type": "Enter text.",
    "dict_type": 'Write a JSON object, such as {{"tolerance": 0.01}}.',
    "list_type": "Enter a list.",
    "too_short": "Give at least {min_length}.",
    "model_type": "Give an object with this part's options.",
    "model_attributes_type": "Give an object with this part's options.",
}


def placed(error: ValidationError, paths: Collection[str]) -> dict[str, list[str]]:
    """Sentences by the dotted path of the closest known field."""
    sentences: dict[str, dict[str, str]] = {}
    for detail in error.errors():
        path = closest(detail["loc"], paths)
        sentences.setdefault(path, {})[detail["type"]] = sentence(detail)
    return {path: one_voice(kinds) for path, kinds in sentences.items()}


def closest(location: tuple[int | str, ...], paths: Collection[str]) -> str:
    """Drop from a location what is no field: the tags of unions, the items of a list of numbers."""
    path = ""
    for step in location:
        longer = f"{path}.{step}" if path else str(step)
        path = longer if longer in paths else path
    return path


def sentence(detail: ErrorDetails) -> str:
    """One error in words; an unknown field is named, since nothing on the form shows it."""
    if detail["type"] == "extra_forbidden":
        return f"There is no option “{detail['loc'][-1]}” here; remove it or correct its name."
    if detail["type"] == "missing" and isinstance(detail["loc"][-1], int):
        return "Enter one more number, separated by a comma."
    pattern = SENTENCES.get(detail["type"])
    context = {key: readable(value) for key, value in detail.get("ctx", {}).items()}
    return pattern.format(**context) if pattern else detail["msg"].rstrip(".") + "."


def readable(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace("'", "")


def one_voice(kinds: Mapping[str, str]) -> list[str]:
    """A word or a number fails both ways at once: say it in one sentence."""
    if "literal_error" in kinds and "int_parsing" in kinds:
        return [kinds["literal_error"].removesuffix(".") + ", or enter a whole number."]
    told = [text for kind, text in kinds.items() if kind != "literal_error" or len(kinds) == 1]
    return list(dict.fromkeys(told))
