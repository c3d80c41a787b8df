"""Turn a schema's complaints into sentences that name the field and say what to change."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vantage_trainer.refusal import Parameter, Refusal
from vantage_trainer.spec import RunSpec

SHOWN = 60
SENTENCES = {
    "greater_than": "{title} must be greater than {gt}; it is {value}.",
    "greater_than_equal": "{title} must be at least {ge}; it is {value}.",
    "less_than": "{title} must be less than {lt}; it is {value}.",
    "less_than_equal": "{title} must be at most {le}; it is {value}.",
    "finite_number": "{title} must be a finite number; it is {value}.",
    "int_parsing": "{title} must be a whole number; it is {value}.",
    "int_type": "{title} must be a whole number; it is {value}.",
    "int_from_float": "{title} must be a whole number; it is {value}.",
    "float_parsing": "{title} must be a number; it is {value}.",
    "float_type": "{title} must be a number; it is {value}.",
    "bool_parsing": "{title} must be yes or no; it is {value}.",
    "bool_type": "{title} must be yes or no; it is {value}.",
    "string_type": "{title} must be text; it is {value}.",
    "missing": "{title} is missing; give a value.",
    "extra_forbidden": "{title} is not a setting of this version; remove it.",
    "literal_error": "{title} must be {expected}; it is {value}.",
    "union_tag_invalid": "{title} must be one of {expected_tags}; it is {tag}.",
    "union_tag_not_found": "{title} needs a kind; say which one it is.",
    "string_pattern_mismatch": "{title} may hold 64 letters, digits, dots, dashes and underscores; it is {value}.",
    "too_short": "{title} needs at least {min_length}; it has {actual_length}.",
    "too_long": "{title} may have at most {max_length}; it has {actual_length}.",
    "list_type": "{title} must be a list; it is {value}.",
    "dict_type": "{title} must be a group of settings; it is {value}.",
    "model_type": "{title} must be a group of settings; it is {value}.",
    "model_attributes_type": "{title} must be a group of settings; it is {value}.",
    "json_invalid": "This is not JSON: {error}.",
}


def explained(error: ValidationError, root: type[BaseModel] = RunSpec) -> list[Refusal]:
    """Say each complaint once per field, in the order of the fields."""
    refusals: dict[str, Refusal] = {}
    for complaint in error.errors(include_url=False):
        path, title = _place(root, complaint["loc"])
        refusal = _refusal(complaint, path, title)
        refusals[path] = _either(refusals[path], refusal) if path in refusals else refusal
    return list(refusals.values())


def _refusal(complaint: ErrorDetails, path: str, title: str) -> Refusal:
    values = {"title": title, "value": _shown(complaint["input"])} | complaint.get("ctx", {})
    parameters: dict[str, Parameter] = {
        str(name): value if isinstance(value, int) else _plain(value) for name, value in values.items()
    }
    sentence = SENTENCES.get(complaint["type"], "{title} cannot be {value}.")
    return Refusal(complaint["type"], path, parameters, sentence.format(**parameters))


def _either(first: Refusal, second: Refusal) -> Refusal:
    """Join what a field of two types says: one of some words, or a number."""
    if first.code != "literal_error":
        return first
    return replace(second, sentence=second.sentence.replace("; it is", f" or {first.parameters['expected']}; it is"))


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _place(root: type[BaseModel], location: Iterable[int | str]) -> tuple[str, str]:
    """Follow a location through the schema, leaving out what is not a field: names of union members."""
    path: list[str] = []
    title, models = "This", [root]
    for piece in location:
        fields = [model.model_fields[piece] for model in models if piece in model.model_fields]
        if fields:
            title = fields[0].title or str(piece).replace("_", " ").capitalize()
            models = [model for field in fields for model in _models(field.annotation)]
        elif isinstance(piece, str) and (path and (not models or _is_member(piece, models))):
            continue
        elif isinstance(piece, str):
            title = piece.replace("_", " ").capitalize()
        path.append(str(piece))
    return ".".join(path), title


def _is_member(piece: str, models: list[type[BaseModel]]) -> bool:
    """A union member is named by its kind, or by its class where there is no kind."""
    kinds = [model.model_fields["kind"].default for model in models if "kind" in model.model_fields]
    return piece in kinds or piece in [model.__name__ for model in models]


def _models(annotation: Any) -> list[type[BaseModel]]:  # an annotation is any object
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for member in get_args(annotation) for model in _models(member)]


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f'"{text[:SHOWN]}"' if isinstance(value, str) else text[:SHOWN]
