"""The form for a new run: made from RunSpec's schema, checked while one types, nothing typed is lost."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST
from vantage_trainer.composition import Algorithm
from vantage_trainer.jobspec import MOST_TRIED
from vantage_trainer.presets import PRESETS
from vantage_trainer.refusal import Refusal
from vantage_trainer.refusals import pointless
from vantage_trainer.spec import RunSpec

from vantage.algorithms import store
from vantage.algorithms.spoken import spoken
from vantage.algorithms.words import WORDS
from vantage.datasets.models import DatasetVersion
from vantage.forms_from_schema import Bound, FormField, bind, form
from vantage.numbers import LARGEST, whole
from vantage.runs.configuration import Change, differences
from vantage.runs.create import AlreadyLaunched, Refused, all_refusals, create_run
from vantage.runs.drafting import choices_of, copy_name, estimate, first_draft, reference_for, tags_of_copy, versions_of
from vantage.runs.launch_token import INCOMPLETE, is_whole, launch_token
from vantage.runs.models import Run
from vantage.runs.overlaps import overlaps
from vantage.runs.pages.own import own_run
from vantage.runs.pages.trying import Tried, queue_dry_run, tried
from vantage.runs.tidying import clean_name, clean_tags
from vantage.teams.access import current_team, reader, require_role
from vantage.teams.audit import record
from vantage.teams.models import Role, Team

HIDDEN = ("schema_version", "algorithm.preset")
OPTIMIZER_CHOICES = (
    ("auto", "Kept if the optimizer's settings stay as they are"),
    ("keep", "Kept"),
    ("fresh", "Fresh"),
)
SECTIONS = (
    ("model", "Model", "What learns."),
    ("data", "Data", "The problems it trains on."),
    ("reward", "Reward", "What counts as a good answer."),
    ("algorithm", "Algorithm", "A preset, or its parts one by one; what runs is what stands here."),
    ("rollout", "Generation", "How answers are made in each step."),
    ("optimization", "Optimization", "How the weights move."),
    ("warm_start", "Warm start", "Supervised steps before reinforcement learning."),
    ("reference", "Reference policy", "What a KL term measures against."),
    ("evaluation", "Evaluation", "Held-out problems, the measure of success."),
    ("checkpoint", "Checkpoints", "What is kept."),
    ("resources", "Resources", "Devices and how they are shared."),
    ("budget", "Budget", "When the run is done."),
)


@dataclass(frozen=True)
class Draft:
    """What stands in the form: the run it was cloned from, what was typed, and what was read of it."""

    team: Team
    versions: list[DatasetVersion]
    parent: Run | None
    base: RunSpec
    bound: Bound[RunSpec] | None
    step: int | None = None  # of the parent's checkpoint, if this is a fork
    beside: dict[str, str] = field(default_factory=dict)  # what a dry run's form held beside the spec

    @property
    def choices(self) -> dict:
        return choices_of(self.versions)

    @property
    def root(self) -> FormField:
        if self.bound:
            return self.bound.root
        return form(RunSpec, self.base, choices=self.choices, words=WORDS, hidden=HIDDEN)

    @property
    def spec(self) -> RunSpec | None:
        return self.bound.value if self.bound else self.base

    @property
    def fork(self) -> tuple[Run, int] | None:
        return (self.parent, self.step) if self.parent is not None and self.step is not None else None

    @property
    def changes(self) -> list[Change]:
        """How it differs from the run that it was cloned from."""
        known = self.spec.model_dump(mode="json") if self.spec else None
        return differences(self.parent.spec, known) if self.parent and known else []


def draft_of(request: HttpRequest) -> Draft:
    team = current_team(request)
    versions = versions_of(team)
    before = tried(request)
    origin = number_in(request, before, "from", most=LARGEST)
    step = number_in(request, before, "step", most=2**31 - 1)
    parent = own_run(request, origin) if origin is not None else None
    base = RunSpec.model_validate(parent.spec) if parent else first_draft(versions)
    if parent and step is not None:
        base = base.model_copy(update={"warm_start": None})
    base = before.spec or base
    if reference := request.GET.get("algorithm", ""):
        base = base.model_copy(update={"algorithm": composition(team, reference) or base.algorithm})
    bound = None
    if request.method == "POST":
        bound = bind(RunSpec, typed(request), base=base, choices=choices_of(versions), words=WORDS, hidden=HIDDEN)
    return Draft(team, versions, parent, base, bound, step if parent else None, before.beside)


def number_in(request: HttpRequest, before: Tried, name: str, *, most: int) -> int | None:
    """A whole number in the form, the address or a dry run; None: there is none that could be meant."""
    text = request.POST.get(name, "") or request.GET.get(name, "") or before.beside.get(name, "")
    return whole(text, most)


def typed(request: HttpRequest) -> dict[str, str]:
    """What was posted; of a name that stands twice (a checkbox and its hidden off) the last one counts."""
    return {name: request.POST[name] for name in request.POST}


@require_http_methods(["GET", "POST"])
@require_role(Role.MEMBER)
def run_new(request: HttpRequest) -> HttpResponse:
    """Show the form; the launch button launches the run, any other POST shows beside each field what to change."""
    draft = draft_of(request)
    if draft.bound is None:
        return show(request, draft)
    if "use_preset" in request.POST:
        return show(request, with_algorithm(draft, request.POST.get("reference", "")))
    if draft.bound.value is None:
        return show(request, draft, status=200 if draft.bound.reshaped else 400)
    if not {"launch", "try"} & set(request.POST):
        return show(request, replace(draft, bound=refused(draft, draft.bound, draft.bound.value)))
    if not is_whole(request.POST, [slug for slug, _, _ in SECTIONS]):
        return show(request, replace(draft, bound=draft.bound.with_errors({"": [INCOMPLETE]})), status=400)
    return start(request, draft, draft.bound, draft.bound.value)


def start(request: HttpRequest, draft: Draft, bound: Bound[RunSpec], spec: RunSpec) -> HttpResponse:
    """Launch the run, or queue a dry run of it; refused, the form says why."""
    try:
        if "try" in request.POST:
            return redirect("job", pk=queue_dry_run(request, draft.team, spec, draft.fork).pk)
        return redirect("run", pk=launched(request, draft, spec).pk)
    except AlreadyLaunched as repeated:
        return redirect("job" if "try" in request.POST else "run", pk=repeated.run.pk)
    except Refused as refused:
        wrong = replace(draft, bound=bound.with_errors(by_path(refused.refusals)))
        return show(request, wrong, status=400)


def launched(request: HttpRequest, draft: Draft, spec: RunSpec) -> Run:
    tags = clean_tags(request.POST.get("run_tags", "").split(","))
    name = clean_name(request.POST.get("run_name", ""))
    parent, step = draft.fork or (None, None)
    run = create_run(
        draft.team,
        reader(request),
        name,
        spec,
        tags=tags,
        parent=parent,
        parent_step=step,
        optimizer=request.POST.get("optimizer", "auto"),
        token=launch_token(request.POST),
    )
    record(draft.team, reader(request), "forked run" if parent else "launched run", str(run))
    return run


@require_POST
@require_role(Role.MEMBER)
def check(request: HttpRequest) -> JsonResponse:
    """Say of a form that is being filled what is wrong, what has no effect, how large it is and what it changes."""
    draft = draft_of(request)
    assert draft.bound is not None
    bound, spec = draft.bound, draft.bound.value
    if spec is not None:
        bound = refused(draft, bound, spec)
    notes = bound.with_errors(by_path(noted(draft, spec))).root if spec is not None and not bound.errors else None
    part = render(request, "runs/summary.html", summary(draft, spec, num_wrong=len(sentences(bound.root))))
    return JsonResponse({"errors": sentences(bound.root), "notes": sentences(notes), "summary": part.content.decode()})


def refused(draft: Draft, bound: Bound[RunSpec], spec: RunSpec) -> Bound[RunSpec]:
    """The form with every reason why its run cannot work."""
    return bound.with_errors(by_path(all_refusals(draft.team, spec, draft.fork)))


def noted(draft: Draft, spec: RunSpec) -> list[Refusal]:
    """What deserves a word; a fork has its parent's weights and misses no warm start."""
    pointed = [note for note in pointless(spec) if not (draft.fork and note.path == "warm_start")]
    return pointed + list(overlaps(draft.team, spec))


def sentences(root: FormField | None) -> dict[str, list[str]]:
    """Sentences by the id of the field that they stand beside."""
    return {field.id: field.errors for field in root.walk() if field.errors} if root else {}


def by_path(refusals: list[Refusal]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for refusal in refusals:
        found.setdefault(refusal.path, []).append(spoken(refusal.sentence))
    return found


def with_algorithm(draft: Draft, reference: str) -> Draft:
    """Fill the algorithm's parts from a preset or the team's own; of the rest only the reference it needs changes."""
    chosen = composition(draft.team, reference)
    if draft.bound is None or chosen is None:
        return draft
    reference_policy = draft.bound.raw.get("reference")
    assert isinstance(reference_policy, dict)
    raw = {**draft.bound.raw, "algorithm": chosen.model_dump(mode="json")}
    if reference_policy["source"] != "path":
        raw["reference"] = {**reference_policy, "source": reference_for(chosen)}
    kept = bind(RunSpec, {}, base=raw, choices=draft.choices, words=WORDS, hidden=HIDDEN)
    return replace(draft, bound=kept)


def composition(team: Team, reference: str) -> Algorithm | None:
    """What a reference means in the team; the composition carries it as its label."""
    try:
        found = store.find(team, reference)
    except ValueError:  # it was deleted while the form stood open: the form stays as it is
        return None
    return found.model_copy(update={"preset": reference})


def summary(draft: Draft, spec: RunSpec | None, *, num_wrong: int = 0) -> dict[str, object]:
    sizes = {str(version): version.num_rows for version in draft.versions}
    return {
        "estimate": estimate(spec, sizes) if spec else None,
        "parent": draft.parent,
        "changes": draft.changes,
        "spec": spec,
        "num_wrong": num_wrong,
    }


def show(request: HttpRequest, draft: Draft, status: int = 200) -> HttpResponse:
    root, posted, algorithms = draft.root, request.POST or draft.beside, store.choices(draft.team)
    name = posted.get("run_name", copy_name(draft.parent, draft.team) if draft.parent else "")
    context = summary(draft, draft.spec, num_wrong=len(sentences(root))) | {
        "section": "runs",
        "crumbs": [("Runs", "/runs/"), ("New run", "")],
        "sections": [(slug, title, says, root.get(slug)) for slug, title, says in SECTIONS],
        "root": root,
        "seed": root.get("seed"),
        "algorithms": algorithms,
        "is_offered": reference_in(draft) in dict(algorithms),
        "reference": reference_in(draft),
        "preset": PRESETS.get(reference_in(draft)),
        "versions": draft.versions,
        "step": draft.step,
        "optimizer": posted.get("optimizer", "auto"),
        "optimizer_choices": OPTIMIZER_CHOICES,
        "run_name": name,
        "run_tags": posted.get("run_tags", ", ".join(tags_of_copy(draft.parent)) if draft.parent else ""),
        "is_refused": status == 400,
        "token": uuid4(),
        "try_prompts": posted.get("try_prompts", "4"),
        "skips_warm_start": "try_prompts" in posted and "try_warm_start" not in posted,
        "most_tried": MOST_TRIED,
    }
    return render(request, "runs/new.html", context, status=status)


def reference_in(draft: Draft) -> str:
    """The preset or version that the form's composition is named after."""
    raw = draft.bound.raw.get("algorithm") if draft.bound else draft.base.algorithm.model_dump()
    return str(raw.get("preset") or "") if isinstance(raw, dict) else ""
