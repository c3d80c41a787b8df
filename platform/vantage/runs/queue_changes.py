"""What people change in the queue: the priority of a waiting run, and who of their own team goes first."""

from django.db import transaction
from django.db.models.functions import Coalesce

from vantage.runs.announce import announce
from vantage.runs.models import Run
from vantage.runs.states import Status
from vantage.teams.audit import record
from vantage.teams.models import User

PRIORITIES = ((-10, "Low"), (0, "Normal"), (10, "High"), (20, "Urgent"))


def set_priority(run: Run, priority: int, person: User) -> bool:
    """Give a waiting run another priority; False: it waits no more, or has it already."""
    waiting = Run.objects.filter(pk=run.pk, status=Status.QUEUED).exclude(priority=priority)
    if not waiting.update(priority=priority):
        return False
    record(run.team, person, "changed priority of run", str(run), before=run.priority, after=priority)
    announce(run.pk, run.team_id)
    return True


def move_to_front(run: Run, person: User) -> bool:
    """Let a waiting run go before all of its team; the team's turns among other teams stay where they are."""
    with transaction.atomic():
        own = Run.objects.select_for_update().filter(team=run.team_id, status=Status.QUEUED, deleted=None)
        waiting = list(own.annotate(age=Coalesce("turn", "queued")).order_by("-priority", "age", "pk"))
        chosen = next((one for one in waiting if one.pk == run.pk), None)
        if chosen is None or chosen is waiting[0]:
            return False
        level = waiting[0].priority
        peers = [chosen, *(one for one in waiting if one.priority == level and one is not chosen)]
        turns = sorted(one.turn or one.queued for one in peers)
        for one, turn in zip(peers, turns, strict=True):
            Run.objects.filter(pk=one.pk).update(priority=level, turn=turn)
        record(run.team, person, "moved run to the front", str(run))
    announce(run.pk, run.team_id)
    return True
