"""A spec as people read it: sections of titled values, and the differences between two specs."""

from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from vantage_trainer.spec import RunSpec

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Missing:
    """What a spec does not have at all; None is a value."""

    def __repr__(self) -> str:
        return "missing"


MISSING = Missing()
GENERAL = "General"


@dataclass(frozen=True)
class Entry:
    """One value of a spec by its path; `is_default` where nobody chose it."""

    path: tuple[str, ...]
    value: Json
    is_default: bool

    @property
    def title(self) -> str:
        return " › ".join(piece.replace("_", " ") for piece in self.path[1:] or self.path)

    @property
    def unit(self) -> str:
        return unit_of(self.path)


@dataclass(frozen=True)
class Change:
    """A path at which two specs differ."""

    path: tuple[str, ...]
    before: Json | Missing
    after: Json | Missing

    @property
    def title(self) -> str:
        return " › ".join(piece.replace("_", " ") for piece in self.path)


def sections(spec: dict[str, Json]) -> list[tuple[str, list[Entry]]]:
    """Return the spec's values under their first key, in the order of RunSpec; single values come first, as General."""
    defaults = dict(leaves(RunSpec().model_dump(mode="json")))
    entries = [Entry(path, value, defaults.get(path, MISSING) == value) for path, value in leaves(in_order(spec))]
    grouped: dict[str, list[Entry]] = {GENERAL: []}
    for entry in entries:
        name = entry.path[0].replace("_", " ").capitalize() if len(entry.path) > 1 else GENERAL
        grouped.setdefault(name, []).append(entry)
    return [(name, found) for name, found in grouped.items() if found]


def in_order(spec: dict[str, Json]) -> dict[str, Json]:
    """Put the keys of a stored spec in the schema's order; one of another version stays as it is."""
    try:
        return RunSpec.model_validate(spec).model_dump(mode="json")
    except ValidationError:
        return spec


def leaves(value: Json, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Json]]:
    """Flatten to (path, value); a path is a tuple, so that a key with a dot is no nesting."""
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))]
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return [leaf for number, inner in enumerate(value, 1) for leaf in leaves(inner, (*path, str(number)))]
    return [(path, value)]


def differences(before: dict[str, Json], after: dict[str, Json]) -> list[Change]:
    """Return what changed, in the order of the new spec, what it lost at the end."""
    old, new = dict(leaves(before)), dict(leaves(after))
    paths = [*new, *(path for path in old if path not in new)]
    changes = [Change(path, old.get(path, MISSING), new.get(path, MISSING)) for path in paths]
    return [change for change in changes if not same(change.before, change.after)]


def same(one: Json | Missing, other: Json | Missing) -> bool:
    """Equal in value and kind: True is not 1, and None is not missing."""
    return type(one) is type(other) and one == other


def unit_of(path: tuple[str, ...]) -> str:
    """The unit that RunSpec declares for a path, or nothing."""
    model: object = RunSpec
    for key in path:
        field = model.model_fields.get(key) if isinstance(model, type) and issubclass(model, BaseModel) else None
        if field is None:
            return ""
        extra, model = field.json_schema_extra, field.annotation
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""
