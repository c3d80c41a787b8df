"""What control each field of a pydantic model needs."""

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

SCALARS = {bool: "checkbox", int: "integer", float: "number", str: "text"}


@dataclass(frozen=True)
class Shape:
    """A field as the form sees it. widget: group, optional, variants, list, select, checkbox, integer, number, text,
    lines (one string a line), numbers (separated by commas), json."""

    key: str
    owner: str
    widget: str
    title: str
    help: str
    unit: str
    advanced: bool
    default: object
    optional: bool = False
    choices: Sequence[tuple[str, str]] = ()
    models: Sequence[type[BaseModel]] = ()
    variants: Mapping[str, type[BaseModel]] = field(default_factory=dict)

    def shown(self, raw: object) -> str:
        """A value as the text of its control; what somebody typed is shown as typed."""
        if raw is None:
            return ""
        if isinstance(raw, str):
            return raw.replace("\n", "\\n") if self.widget == "text" else raw
        if self.widget == "lines" and isinstance(raw, list):
            return "\n".join(str(line).replace("\n", "\\n") for line in raw)
        if self.widget == "numbers" and isinstance(raw, (list, tuple)):
            return ", ".join(number(item) for item in raw)
        return json.dumps(raw) if self.widget == "json" else number(raw)


def number(value: object) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


@cache
def fields_of(model: type[BaseModel]) -> tuple[Shape, ...]:
    """The fields a person can set; what has only one value is left out."""
    return tuple(
        shape(model, key, info, inner, optional)
        for key, info in model.model_fields.items()
        for inner, optional in [without_none(info.annotation)]
        if not (get_origin(inner) is Literal and len(get_args(inner)) == 1)
    )


def shape(model: type[BaseModel], key: str, info: FieldInfo, inner: object, optional: bool) -> Shape:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    widget, choices, models = control(inner)
    return Shape(
        key=key,
        owner=f"{owner_of(model, key)}.{key}",
        widget="optional" if widget == "group" and optional else widget,
        title=info.title or key.replace("_", " ").capitalize(),
        help=info.description or "",
        unit=str(extra.get("unit") or ""),
        advanced=bool(extra.get("advanced")),
        default=default_of(info),
        optional=optional,
        choices=[("", "-"), *choices] if optional and widget == "select" else choices,
        models=models,
        variants={kind_of(part): part for part in models} if widget == "variants" else {},
    )


def owner_of(model: type[BaseModel], key: str) -> str:
    """The class that declares the field, so that what variants share is explained once."""
    declaring = [part for part in model.__mro__ if key in getattr(part, "__annotations__", {})]
    return declaring[0].__name__ if declaring else model.__name__


def default_of(info: FieldInfo) -> object:
    value = info.get_default(call_default_factory=True) if not info.is_required() else None
    if isinstance(value, list):
        return [item.model_dump(mode="json") if isinstance(item, BaseModel) else item for item in value]
    return None if value is PydanticUndefined else value


def control(inner: object) -> tuple[str, Sequence[tuple[str, str]], Sequence[type[BaseModel]]]:
    """widget, choices and models of an annotation without its None."""
    origin, arguments = get_origin(inner), get_args(inner)
    if origin is Literal:
        return "select", [(str(word), str(word).replace("_", " ")) for word in arguments], ()
    if is_union(inner):
        return of_union([bare(argument) for argument in arguments])
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        return "group", (), (inner,)
    if origin is list:
        item = bare(arguments[0])
        if isinstance(item, type) and issubclass(item, BaseModel):
            return "list", (), (item,)
        return ("lines" if item is str else "numbers"), (), ()
    if origin is tuple:
        return "numbers", (), ()
    return (SCALARS[inner] if isinstance(inner, type) and inner in SCALARS else "json"), (), ()


def of_union(arguments: list[object]) -> tuple[str, Sequence[tuple[str, str]], Sequence[type[BaseModel]]]:
    models = [part for part in arguments if isinstance(part, type) and issubclass(part, BaseModel)]
    if len(models) == len(arguments):
        return "variants", (), models
    words = [word for part in arguments if get_origin(part) is Literal for word in get_args(part)]
    return "word_or_number", [(word, word) for word in words], ()


def is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def bare(annotation: object) -> object:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def without_none(annotation: object) -> tuple[object, bool]:
    """Take None out of a union: (what is left, whether None was in it)."""
    annotation = bare(annotation)
    if not is_union(annotation):
        return annotation, False
    left = [argument for argument in get_args(annotation) if argument is not type(None)]
    if len(left) == len(get_args(annotation)):
        return annotation, False
    return bare(left[0]) if len(left) == 1 else Union[tuple(left)], True  # noqa: UP007 made at run time


def kind_of(model: type[BaseModel]) -> str:
    return str(get_args(model.model_fields["kind"].annotation)[0])
