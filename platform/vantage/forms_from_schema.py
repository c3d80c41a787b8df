"""Make a form of any pydantic model, and read it back: a new option appears without touching a template.

How to use it:

    bound = bind(RunSpec, request.POST, base=demo_spec(), choices={"data.train": pairs})   # POST
    root = form(RunSpec, demo_spec(), choices=...)                                         # GET
    {% include "forms/field.html" with field=root %}                                       (in a template)
    <script type="module" src="{% static 'js/variants.js' %}"></script>                    (once per page)

A control's name is the field's dotted path (`budget.steps`, `evaluation.sets.0.dataset`). Fields that only one variant
has carry the variant in their name (`algorithm.scale:group_std.std_eps`); the plain path is read as well. What is not
posted keeps the value of `base`. `bound.value` is the model or None, `bound.root` the form with what was typed and the
sentences beside it; `bound.with_errors({"data.train": ["..."]})` adds later refusals. `bound.reshaped` is true when a
button added or removed a list's row: show the form again, nothing is wrong. `root.get("data")` gives one part by path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError
from vantage_trainer.refusals import explain

from vantage.form_parsing import parse, reshaping
from vantage.form_shapes import Shape, fields_of

M = TypeVar("M", bound=BaseModel)
Words = Mapping[str, tuple[str, str]]
Errors = Mapping[str, Sequence[str]]
Choices = Mapping[str, Sequence[tuple[str, str]]]


@dataclass
class FormField:
    """One node of the form: a control, or a group of them."""

    path: str
    name: str
    widget: str
    title: str
    help: str = ""
    unit: str = ""
    advanced: bool = False
    optional: bool = False
    value: str = ""
    on: bool = False
    choices: Sequence[tuple[str, str]] = ()
    errors: list[str] = field(default_factory=list)
    children: list["FormField"] = field(default_factory=list)
    item: str = ""  # what one row of a list is called

    @property
    def id(self) -> str:
        return "f-" + self.name.replace(".", "-").replace(":", "-")

    @property
    def one_more(self) -> str:
        return f"Add {'an' if self.item[:1] in 'AEIOU' else 'a'} {self.item.lower()}"

    @property
    def plain(self) -> list["FormField"]:
        return [child for child in self.children if not child.advanced]

    @property
    def more(self) -> list["FormField"]:
        return [child for child in self.children if child.advanced]

    @property
    def more_is_wrong(self) -> bool:
        return any(child.is_wrong for child in self.more)

    @property
    def is_wrong(self) -> bool:
        return bool(self.errors) or any(child.is_wrong for child in self.children)

    def walk(self) -> Iterator["FormField"]:
        """Every field in use: of variants only the chosen one, of optional parts only those switched on."""
        yield self
        for child in self.children:
            if child.widget != "variant" or child.on:
                yield from child.walk()

    def get(self, path: str) -> "FormField":
        """The field at a dotted path."""
        return next(found for found in self.walk() if found.path == path and found.widget != "variant")


@dataclass(frozen=True)
class Maker:
    """What is the same for all fields of one form."""

    choices: Choices = field(default_factory=dict)
    words: Words = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    def group(self, model: type[BaseModel], path: str, name: str, raw: Mapping[str, object]) -> list[FormField]:
        return [
            self.make(shape, join(path, shape.key), join(name, shape.key), raw.get(shape.key, shape.default))
            for shape in fields_of(model)
        ]

    def make(self, shape: Shape, path: str, name: str, raw: object) -> FormField:
        title, help = self.words.get(shape.owner, ("", ""))
        made = FormField(path, name, shape.widget, title or shape.title, help or shape.help, shape.unit, shape.advanced)
        made.optional = shape.optional
        offered = self.choices.get(path) or self.choices.get(".".join(map(starred, path.split("."))))
        if path in self.hidden:
            made.widget, made.value = "hidden", shape.shown(raw)
        elif offered is not None:
            made.widget, made.choices, made.value = "select", offered, shape.shown(raw)
        else:
            getattr(self, f"fill_{shape.widget}", self.fill_control)(made, shape, raw)
        return made

    def fill_control(self, made: FormField, shape: Shape, raw: object) -> None:
        made.value, made.choices, made.on = shape.shown(raw), shape.choices, raw in (True, "on", "true")

    def fill_group(self, made: FormField, shape: Shape, raw: object) -> None:
        made.children = self.group(shape.models[0], made.path, made.name, mapping(raw))

    def fill_optional(self, made: FormField, shape: Shape, raw: object) -> None:
        made.on = raw is not None
        made.children = self.group(shape.models[0], made.path, made.name, mapping(raw))

    def fill_list(self, made: FormField, shape: Shape, raw: object) -> None:
        rows = raw if isinstance(raw, list) else []
        made.item = str(shape.models[0].model_config.get("title") or made.title)
        for number, row in enumerate(rows):
            path, name = join(made.path, str(number)), join(made.name, str(number))
            made.children.append(FormField(path, name, "row", f"{made.item} {number + 1}"))
            made.children[-1].children = self.group(shape.models[0], path, name, mapping(row))

    def fill_variants(self, made: FormField, shape: Shape, raw: object) -> None:
        chosen = mapping(raw)
        made.value = str(chosen.get("kind", ""))
        for kind, model in shape.variants.items():
            title, help = self.words.get(model.__name__, ("", ""))
            is_chosen = kind == made.value
            branch = FormField(made.path, f"{made.name}:{kind}", "variant", title or spaced(kind), help, value=kind)
            branch.on = is_chosen
            branch.children = self.group(model, made.path, branch.name, chosen if is_chosen else {})
            made.children.append(branch)
        made.choices = [(branch.value, branch.title) for branch in made.children]


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def starred(step: str) -> str:
    return "*" if step.isdigit() else step


def spaced(word: str) -> str:
    return word.replace("_", " ")


def mapping(raw: object) -> Mapping[str, object]:
    if isinstance(raw, BaseModel):
        return raw.model_dump(mode="json")
    return raw if isinstance(raw, Mapping) else {}


def form(
    model: type[BaseModel],
    value: BaseModel | Mapping[str, object] | None = None,
    *,
    errors: Errors | None = None,
    choices: Choices | None = None,
    words: Words | None = None,
    hidden: Sequence[str] = (),
) -> FormField:
    """The form of a model, filled with a value. `choices` by path; `*` is any row: evaluation.sets.*.dataset."""
    root = FormField("", "", "group", "")
    root.children = Maker(choices or {}, words or {}, frozenset(hidden)).group(model, "", "", mapping(value))
    place(root, errors or {})
    return root


def place(root: FormField, errors: Errors) -> None:
    """Put each sentence beside its field, or beside the closest part that is shown."""
    fields = {found.path: found for found in root.walk() if found.widget not in ("hidden", "variant")}
    for path, sentences in errors.items():
        steps = path.split(".")
        shown = next((p for n in range(len(steps), 0, -1) if (p := ".".join(steps[:n])) in fields), "")
        fields[shown].errors.extend(sentences)


@dataclass(frozen=True)
class Bound(Generic[M]):
    """A posted form."""

    model: type[M]
    raw: Mapping[str, object]
    value: M | None
    errors: Errors
    reshaped: bool
    choices: Choices
    words: Words
    hidden: Sequence[str]

    @property
    def root(self) -> FormField:
        return form(
            self.model, self.raw, errors=self.errors, choices=self.choices, words=self.words, hidden=self.hidden
        )

    def with_errors(self, errors: Errors) -> "Bound[M]":
        """The same form with more sentences; it has no value then."""
        merged = {path: [*self.errors.get(path, ()), *errors.get(path, ())] for path in {*self.errors, *errors}}
        return replace(self, errors=merged, value=None if merged else self.value)


def bind(
    model: type[M],
    data: Mapping[str, object],
    *,
    base: BaseModel | Mapping[str, object] | None = None,
    choices: Choices | None = None,
    words: Words | None = None,
    hidden: Sequence[str] = (),
) -> Bound[M]:
    """Read what was posted over `base`, check it, and keep it for showing again."""
    raw = parse(model, data, mapping(base))
    value: M | None = None
    errors: dict[str, list[str]] = {}
    if not reshaping(data):
        try:
            value = model.model_validate(raw)
        except ValidationError as error:
            errors = {refusal.path: [refusal.sentence] for refusal in explain(error, model)}
    return Bound(model, raw, value, errors, reshaping(data), choices or {}, words or {}, hidden)
