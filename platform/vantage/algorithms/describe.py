"""An algorithm in words: its parts as a table, in short, and what differs between two."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from vantage_trainer.composition import Algorithm

from vantage.algorithms.sources import sources_of
from vantage.algorithms.words import WORDS
from vantage.forms_from_schema import FormField, form

HIDDEN = ("preset",)


@dataclass(frozen=True)
class Option:
    path: str
    title: str
    value: str
    meaning: str


@dataclass
class PartInWords:
    """One part: what it is for, what was chosen, what that means, and its options."""

    path: str
    title: str
    purpose: str
    choice: str = ""
    meaning: str = ""
    options: list[Option] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Difference:
    """A choice or option of two algorithms; empty where one does not have it."""

    path: str
    title: str
    left: str
    right: str

    @property
    def is_other(self) -> bool:
        return self.left != self.right


def algorithm_form(algorithm: Algorithm | dict[str, object]) -> FormField:
    return form(Algorithm, algorithm, words=WORDS, hidden=HIDDEN)


def parts(algorithm: Algorithm) -> list[PartInWords]:
    """The composition as a table."""
    nodes = [node for node in algorithm_form(algorithm).children if node.widget != "hidden"]
    return [in_words(node, sources_of(getattr(algorithm, node.path))) for node in nodes]


def in_words(node: FormField, sources: list[str]) -> PartInWords:
    chosen = next((branch for branch in node.children if branch.widget == "variant" and branch.on), None)
    told = PartInWords(node.path, node.title, node.help, sources=sources)
    if chosen:
        told.choice, told.meaning = chosen.title, chosen.help
    told.options = list(options((chosen or node).children))
    return told


def options(nodes: list[FormField], within: str = "") -> Iterator[Option]:
    """Every option that says something; what is switched off is told as off."""
    for node in nodes:
        title = f"{within}{node.title}"
        if node.widget == "optional":
            yield Option(node.path, title, "on" if node.on else "off", node.help)
            if node.on:
                yield from options(node.children, f"{title}: ")
        elif node.widget != "hidden":
            yield Option(node.path, title, shown(node), node.help)


def shown(node: FormField) -> str:
    if node.widget == "checkbox":
        return "on" if node.on else "off"
    return dict(node.choices).get(node.value, node.value) or "none"


def in_short(algorithm: Algorithm) -> list[str]:
    """The choices that are not `none`, for a line in a list."""
    said = []
    for part in parts(algorithm):
        if part.choice and part.choice != "None":
            said.append(part.choice)
        said += [option.title for option in part.options if option.value == "on"]
    return said


def differences(left: Algorithm, right: Algorithm) -> list[Difference]:
    """Each choice and option in which two algorithms differ."""
    return [one for one in side_by_side(left, right) if one.is_other]


def side_by_side(left: Algorithm, right: Algorithm) -> list[Difference]:
    """Each choice and option that either of two algorithms has."""
    mine, theirs = flat(left), flat(right)
    return [
        Difference(key, (mine.get(key) or theirs[key])[0], mine.get(key, ("", ""))[1], theirs.get(key, ("", ""))[1])
        for key in sorted(dict.fromkeys([*mine, *theirs]), key=part_order)
    ]


def part_order(key: str) -> int:
    """Keep what belongs to one part together."""
    return list(Algorithm.model_fields).index(key.split(" ")[0].split(".")[0])


def flat(algorithm: Algorithm) -> dict[str, tuple[str, str]]:
    """(title, value) by path; options carry their choice, so that two epsilons of different choices stay apart."""
    found = {}
    for part in parts(algorithm):
        if part.choice:
            found[part.path] = part.title, part.choice
        for option in part.options:
            found[f"{option.path} {part.choice}"] = f"{part.title}: {option.title}", option.value
    return found
