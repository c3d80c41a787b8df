"""Trying a run before it is launched: from the form to a dry run, and from a dry run back to the form."""

from dataclasses import dataclass, field

from django.http import HttpRequest
from vantage_trainer.jobspec import MOST_TRIED, DryRunSpec
from vantage_trainer.refusal import refuse
from vantage_trainer.spec import RunSpec

from vantage.numbers import whole
from vantage.runs.create import Refused
from vantage.runs.folder import STEPS
from vantage.runs.jobs import create_job
from vantage.runs.launch_token import launch_token
from vantage.runs.models import Run
from vantage.runs.pages.own import own_job
from vantage.runs.tidying import clean_name
from vantage.teams.access import reader
from vantage.teams.models import Team

BESIDE = ("run_name", "run_tags", "optimizer", "from", "step")  # what the form holds beside the spec


@dataclass(frozen=True)
class Tried:
    """What a dry run was made of: the form as it stood then."""

    spec: RunSpec | None = None
    beside: dict[str, str] = field(default_factory=dict)


def tried(request: HttpRequest) -> Tried:
    """Read the dry run that the address names, if it names one."""
    pk = whole(request.GET.get("tried", ""))
    if pk is None:
        return Tried()
    spec = DryRunSpec.model_validate(own_job(request, pk).spec)
    return Tried(spec.run, spec.beside)


def queue_dry_run(request: HttpRequest, team: Team, spec: RunSpec, fork: tuple[Run, int] | None) -> Run:
    """Queue a dry run of the posted form. Raises Refused with all reasons, AlreadyLaunched for the same form again."""
    posted = request.POST
    prompts = whole(posted.get("try_prompts", ""), MOST_TRIED)
    if not prompts:
        sentence = "Try between 1 and {most} problems."
        raise Refused([refuse("try_prompts", "", sentence, most=MOST_TRIED)])
    parent, step = fork or (None, None)
    wanted = DryRunSpec(
        run=spec,
        model=spec.model,
        checkpoint="" if step is None else f"{STEPS}{step:06d}",
        prompts=prompts,
        warm_start=posted.get("try_warm_start") == "on",
        beside={name: posted[name] for name in BESIDE if posted.get(name)},
    )
    wanted.resources.tensor_parallel = spec.resources.tensor_parallel
    wanted.resources.generation_devices = spec.resources.generation_devices
    name = clean_name(posted.get("run_name", ""))
    return create_job(
        team,
        reader(request),
        wanted,
        name=f"Dry run of {name}"[:200] if name else "Dry run",
        parent=parent,
        token=launch_token(posted),
    )
