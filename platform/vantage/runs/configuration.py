"""A spec as people read it: sections of titled values, and the differences between two specs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError
from vantage_trainer.spec import RunSpec

from vantage.algorithms.words import WORDS
from vantage.forms_from_schema import FormField, form

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Missing:
    """What a spec does not have at all; None is a value."""

    def __repr__(self) -> str:
        return "missing"


MISSING = Missing()
GENERAL = "General"


Path = tuple[str, ...]


@dataclass(frozen=True)
class Words:
    """What the form calls a value of a spec: its title under those above it, its unit, and the words of its values."""

    titles: Path
    unit: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One value of a spec by its path; `is_default` where nobody chose it."""

    path: Path
    value: Json
    is_default: bool
    words: Words

    @property
    def title(self) -> str:
        return " › ".join(self.words.titles[1:] or self.words.titles)

    @property
    def key(self) -> str:
        """Where the value stands in the spec, below its section."""
        return ".".join(self.path[1:] or self.path)

    @property
    def shown(self) -> Json:
        return self.words.values.get(self.value, self.value) if isinstance(self.value, str) else self.value

    @property
    def unit(self) -> str:
        return self.words.unit


@dataclass(frozen=True)
class Change:
    """A path at which two specs differ."""

    path: Path
    before: Json | Missing
    after: Json | Missing
    words: Words

    @property
    def title(self) -> str:
        return " › ".join(self.words.titles)

    @property
    def key(self) -> str:
        return ".".join(self.path)


def sections(spec: dict[str, Json]) -> list[tuple[str, list[Entry]]]:
    """Return the spec's values under their first key, in the order of RunSpec; single values come first, as General."""
    defaults = dict(leaves(RunSpec().model_dump(mode="json")))
    told, words = in_order(spec), words_of(spec)
    entries = [
        Entry(path, value, defaults.get(path, MISSING) == value, words.get(path) or plain_words(path))
        for path, value in leaves(told)
    ]
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
    words = words_of(before) | words_of(after)
    changes = [
        Change(path, old.get(path, MISSING), new.get(path, MISSING), words.get(path) or plain_words(path))
        for path in paths
    ]
    return [change for change in changes if not same(change.before, change.after)]


def same(one: Json | Missing, other: Json | Missing) -> bool:
    """Equal in value and kind: True is not 1, and None is not missing."""
    return type(one) is type(other) and one == other


def words_of(spec: dict[str, Json]) -> dict[Path, Words]:
    """What the form for a new run calls each value of the spec, by path."""
    return dict(_words(form(RunSpec, spec, words=WORDS).children, ()))


def plain_words(path: Path) -> Words:
    """The words for what no form asks for: the keys themselves."""
    return Words(tuple(piece.replace("_", " ").capitalize() for piece in path))


def _words(nodes: Iterable[FormField], above: Path) -> Iterator[tuple[Path, Words]]:
    for node in nodes:
        titles = above if node.widget == "variant" else (*above, node.title)
        path = tuple(str(int(key) + 1) if key.isdigit() else key for key in node.path.split("."))
        if node.widget == "variants":
            yield (*path, "kind"), Words(titles, values=dict(node.choices))
            yield from _words([branch for branch in node.children if branch.on], titles)
        elif node.widget == "list":
            yield path, Words(titles)
            yield from _words(node.children, above)
        else:
            yield path, Words(titles, node.unit)
            yield from _words(node.children, titles)
