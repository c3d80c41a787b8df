"""The run that a page is about."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from vantage.runs.models import Run
from vantage.runs.querysets import RunQuerySet
from vantage.runs.states import Kind
from vantage.teams.access import reader


def own_run(request: HttpRequest, pk: int) -> Run:
    """The run with all that its header names, or 404 unless it is one of the reader's."""
    return get_object_or_404(_own(request).training(), pk=pk)


def own_job(request: HttpRequest, pk: int) -> Run:
    """The same for a job of another kind."""
    return get_object_or_404(_own(request).exclude(kind=Kind.TRAIN), pk=pk)


def own_work(request: HttpRequest, pk: int) -> Run:
    """The same for a run or a job, where it makes no difference."""
    return get_object_or_404(_own(request), pk=pk)


def _own(request: HttpRequest) -> RunQuerySet:
    return Run.objects.visible_to(reader(request)).select_related("team", "created_by", "node", "parent")
