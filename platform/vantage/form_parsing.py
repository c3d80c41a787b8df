"""Read a posted form back into a nested dict; what was typed stays text until pydantic checks it."""

import json
import re
from collections.abc import Mapping

from pydantic import BaseModel

from vantage.form_shapes import Shape, fields_of
from vantage.numbers import whole
from vantage.stored import is_deep

ADD, REMOVE = "form.add", "form.remove"


class Missing:
    """Nothing was posted for this field."""


MISSING = Missing()


def reshaping(data: Mapping[str, object]) -> bool:
    """Whether the button pressed only adds or removes a row of a list."""
    return ADD in data or REMOVE in data


def parse(
    model: type[BaseModel], data: Mapping[str, object], base: Mapping[str, object], *names: str
) -> dict[str, object]:
    """Read the fields of a model; `names` are prefixes under which a control may stand, the most exact one first."""
    read = dict(base)
    for shape in fields_of(model):
        value = parse_field(
            shape, data, base.get(shape.key), [f"{n}.{shape.key}" if n else shape.key for n in names or ("",)]
        )
        if not isinstance(value, Missing):
            read[shape.key] = value
    return read


def parse_field(shape: Shape, data: Mapping[str, object], base: object, names: list[str]) -> object:
    known = base if isinstance(base, Mapping) else {}
    if shape.widget == "group":
        return parse(shape.models[0], data, known, *names) if posted_under(data, names) else MISSING
    if shape.widget == "optional":
        return parse_optional(shape, data, known, names)
    if shape.widget == "variants":
        return parse_variant(shape, data, known, names)
    if shape.widget == "list":
        return parse_list(shape, data, base, names)
    name = next((name for name in names if name in data), None)
    return MISSING if name is None else parse_control(shape, str(data[name]))


def parse_control(shape: Shape, text: str) -> object:
    if shape.widget == "checkbox":
        return text in ("on", "true", "True", "1")
    if shape.widget == "lines":
        return [line.replace("\\n", "\n") for line in text.splitlines() if line]
    if shape.widget == "text":
        text = text.replace("\\n", "\n")
        return None if shape.optional and not text else text
    text = text.strip()
    if shape.optional and not text:
        return None
    if shape.widget == "numbers":
        return [part for part in re.split(r"[,\s]+", text) if part]
    return parse_json(text) if shape.widget == "json" else whole_choice(shape, text)


def whole_choice(shape: Shape, text: str) -> object:
    """A choice among integers posts text; pydantic's Literal wants the integer."""
    number = whole(text) if shape.widget == "select" else None
    return text if number is None else number


def parse_json(text: str) -> object:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):  # it is wrong or nested without end: pydantic refuses the text
        return text
    return text if is_deep(value) else value


def parse_optional(shape: Shape, data: Mapping[str, object], base: Mapping[str, object], names: list[str]) -> object:
    switch = next((str(data[name]) for name in names if name in data), None)
    if switch is None and not posted_under(data, names):
        return MISSING
    return None if switch == "off" else parse(shape.models[0], data, base, *names)


def parse_variant(shape: Shape, data: Mapping[str, object], base: Mapping[str, object], names: list[str]) -> object:
    posted = next((str(data[f"{name}.kind"]) for name in names if f"{name}.kind" in data), None)
    if posted is None and not posted_under(data, names):
        return MISSING
    kind = posted or str(base.get("kind", ""))
    if kind not in shape.variants:
        return {"kind": kind}
    known = base if base.get("kind") == kind else {"kind": kind}
    return parse(shape.variants[kind], data, known, *[f"{name}:{kind}" for name in names], *names)


def parse_list(shape: Shape, data: Mapping[str, object], base: object, names: list[str]) -> object:
    name = next((name for name in names if name in data or posted_under(data, [name])), None)
    if name is None and data.get(ADD) not in names:
        return MISSING
    row = re.compile(re.escape(name or names[0]) + r"\.([0-9]{1,4})[.:]")
    numbers = sorted({int(found.group(1)) for key in data if (found := row.match(key))})
    rows = [(f"{name}.{number}", number) for number in numbers if data.get(REMOVE) != f"{name}.{number}"]
    known = base if isinstance(base, list) else []
    read = [parse(shape.models[0], data, known[n] if n < len(known) else {}, prefix) for prefix, n in rows]
    return [*read, {}] if data.get(ADD) in names else read


def posted_under(data: Mapping[str, object], names: list[str]) -> bool:
    return any(key.startswith((f"{name}.", f"{name}:")) for name in names for key in data)
