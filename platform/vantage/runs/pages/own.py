"""The run that a page is about."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from vantage.runs.models import Run
from vantage.teams.access import reader


def own_run(request: HttpRequest, pk: int) -> Run:
    """The run with all that its header names, or 404 unless it is one of the reader's."""
    runs = Run.objects.visible_to(reader(request)).select_related("team", "created_by", "node", "parent")
    return get_object_or_404(runs, pk=pk)
