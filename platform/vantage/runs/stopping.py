"""Stop a run as a person wishes, whatever it is doing."""

from django.db import transaction
from django.db.models.functions import Now

from vantage.runs.announce import announce
from vantage.runs.models import Attempt, Run
from vantage.teams.models import User


def stop_run(run: Run, person: User) -> bool:
    """Ask a run at work to stop, or take a waiting one out of the queue; False: it has ended already."""
    chosen = Run.objects.filter(pk=run.pk)
    waited = {"ended": Now(), "sentence": "Stopped while it waited."}
    with transaction.atomic():
        moved = chosen.move("ask_stop", stopped_by=person)
        if not moved and (moved := chosen.move("withdraw", stopped_by=person, **waited)):
            Attempt.objects.filter(run=run).abandon()
    transaction.on_commit(lambda: announce(run.pk, run.team_id))
    return bool(moved)
