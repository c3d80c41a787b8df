"""What an algorithm's page shows beside its form: the objective and its curves, again at every change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_http_methods
from pydantic import JsonValue
from vantage_trainer.composition import Algorithm as Composition
from vantage_trainer.refusals import pointless
from vantage_trainer.spec import Optimization, Rollout, RunSpec

from vantage.algorithms import store
from vantage.algorithms.charts import CHARTS, figures
from vantage.algorithms.describe import HIDDEN
from vantage.algorithms.formula.letters import Line
from vantage.algorithms.formula.objective import formula
from vantage.algorithms.helper import HELPER, Reply, State
from vantage.algorithms.refusing import refused
from vantage.algorithms.spoken import spoken
from vantage.algorithms.words import WORDS
from vantage.forms_from_schema import Bound, FormField, bind
from vantage.numbers import whole
from vantage.teams.access import current_team, reader
from vantage.teams.models import Team
from vantage.text import showable

LARGEST_GROUP, LARGEST_LIMIT = 256, 10**7
DEFAULTS = Rollout()


@dataclass(frozen=True)
class Sizes:
    """What the curves are drawn for: a run decides it, a page of an algorithm asks."""

    group_size: int = DEFAULTS.group_size
    response_limit: int = DEFAULTS.response_limit

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Sizes":
        """Read sizes from an address or a form; what is no size in bounds is the default."""
        group, limit = whole(query.get("group_size", ""), LARGEST_GROUP), whole(query.get("limit", ""), LARGEST_LIMIT)
        return cls(group if group and group > 1 else cls.group_size, limit or cls.response_limit)


@dataclass(frozen=True)
class Explained:
    """A composition under the name it is shown with; in a run the response limit is known."""

    title: str
    composition: Composition
    response_limit: int | None = None


@require_http_methods(["GET", "POST"])
def explain(request: HttpRequest) -> JsonResponse:
    """The objective and curves of ?of=grpo (several: over each other), or of a form that is being filled."""
    sizes = Sizes.of(request.POST if request.method == "POST" else request.GET)
    answer: dict[str, object] = {}
    if request.method == "POST":
        bound = bound_form(request)
        answer = {"errors": sentences(bound.root), "notes": sentences(noted(bound).root)}
        chosen = [Explained("This one", bound.value)] if bound.value is not None else []
    else:
        chosen = known(request, request.GET.getlist("of")[:2])
    if chosen:
        answer |= shown(chosen, sizes)
    response = JsonResponse(answer)
    patch_cache_control(response, no_store=True)
    return response


def board(references: Sequence[str], query: Mapping[str, str], *, name: str = "of") -> dict[str, object]:
    """What the template of the curves needs; the process that computes them begins to warm up."""
    warm()
    address = f"{reverse('algorithm_explain')}?{urlencode([(name, reference) for reference in references])}"
    return {"explain_url": address, "charts": CHARTS, "sizes": Sizes.of(query)}


def warm() -> None:
    """Begin to load the mathematics, for a page that will ask."""
    HELPER.warm()


def bound_form(request: HttpRequest) -> Bound[Composition]:
    """What stands in the form, over the composition that it started from, with every reason why it is none."""
    start = known(request, [request.GET.get("from") or "grpo"])
    base = start[0].composition if start else Composition()
    bound = bind(Composition, request.POST, base=base, words=WORDS, hidden=HIDDEN)
    return refused(bound, bound.value) if bound.value is not None else bound


def known(request: HttpRequest, references: Sequence[str]) -> list[Explained]:
    """The compositions that references mean in the reader's teams; what means none is left out."""
    teams = dict.fromkeys([current_team(request), *reader(request).visible_teams()])
    found = []
    for reference in references:
        meant = (composition for team in teams if (composition := meaning(team, reference)))
        if composition := next(meant, None):
            found.append(Explained(store.title_of(reference), composition))
    return found


def meaning(team: Team, reference: str) -> Composition | None:
    try:
        return store.find(team, reference)
    except ValueError:  # deleted meanwhile, or another team's
        return None


def noted(bound: Bound[Composition]) -> Bound[Composition]:
    """The options that the rest of the composition makes meaningless, whatever run it is used in."""
    if bound.value is None:
        return replace(bound, errors={})
    return bound.with_errors(notes(bound.value))


def notes(composition: Composition) -> dict[str, list[str]]:
    several = Optimization(minibatches=2)  # what only holds of one update per batch is the run's affair
    found: dict[str, list[str]] = {}
    for note in pointless(RunSpec(algorithm=composition, optimization=several)):
        if note.path.startswith("algorithm."):
            found.setdefault(note.path.removeprefix("algorithm."), []).append(spoken(note.sentence))
    return found


def sentences(root: FormField) -> dict[str, list[str]]:
    return {found.id: found.errors for found in root.walk() if found.errors}


def shown(chosen: Sequence[Explained], sizes: Sizes) -> dict[str, object]:
    """Formula and figures, as a page puts them in their places."""
    lines = [formula(one.composition, one.response_limit) for one in chosen]
    answer: dict[str, object] = {"formula": written(lines[0])}
    if len(chosen) > 1:
        answer |= {"formula": written(lines[0], lines[1]), "other": written(lines[1], lines[0])}
    return answer | drawn(chosen, sizes)


def written(lines: Sequence[Line], other: Sequence[Line] = ()) -> str:
    """The formula as HTML; beside another one, the lines that the other has not are marked."""
    return render_to_string("algorithms/formula.html", {"formula": marked(lines, other)})


def marked(lines: Sequence[Line], other: Sequence[Line] = ()) -> list[dict[str, object]]:
    theirs = {line.math for line in other}
    return [
        {"says": line.says, "math": line.math, "is_other": bool(other) and line.math not in theirs} for line in lines
    ]


def drawn(chosen: Sequence[Explained], sizes: Sizes) -> dict[str, object]:
    replies = [curves(one.composition, sizes) for one in chosen]
    missing = next((reply for reply in replies if reply.state != State.ANSWERED), None)
    if missing is not None:
        return {"figures": None, "state": missing.state, "sentence": showable(missing.sentence)}
    named = [(showable(one.title), reply.value) for one, reply in zip(chosen, replies, strict=True)]
    return {"figures": figures(named), "state": State.ANSWERED, "sentence": ""}  # type: ignore[arg-type]  # as asked


def curves(composition: Composition, sizes: Sizes) -> Reply:
    """Ask the helper; names say nothing about what is computed."""
    algorithm: JsonValue = composition.model_dump(mode="json", exclude={"preset"})
    question = {"ask": "curves", "algorithm": algorithm}
    return HELPER.ask(question | {"group_size": sizes.group_size, "response_limit": sizes.response_limit})
