"""Addresses of this app."""

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from vantage.runs.pages import (
    changing,
    jobs,
    launching,
    listing,
    node_changes,
    nodes,
    queueing,
    records,
    rescoring,
    samples,
    watching,
)
from vantage.runs.stream import stream

urlpatterns: list[URLPattern] = [
    path("", RedirectView.as_view(pattern_name="runs")),
    path("stream", stream, name="stream"),
    path("runs/", listing.runs, name="runs"),
    path("runs/change/", listing.change_many, name="runs_change"),
    path("runs/restore/", listing.restore_many, name="runs_restore"),
    path("runs/new/", launching.run_new, name="run_new"),
    path("runs/new/check/", launching.check, name="run_check"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("nodes/<int:pk>/pause/", node_changes.pause, name="node_pause"),
    path("nodes/<int:pk>/resume/", node_changes.resume, name="node_resume"),
    path("nodes/<int:pk>/remove/", node_changes.remove, name="node_remove"),
    path("runs/<int:pk>/", watching.run, name="run"),
    path("runs/<int:pk>/head/", watching.head, name="run_head"),
    path("runs/<int:pk>/charts/", watching.chart_data, name="run_charts"),
    path("runs/<int:pk>/charts/<slug:slug>.csv", watching.chart_csv, name="run_chart_csv"),
    path("runs/<int:pk>/samples/", samples.samples, name="run_samples"),
    path("runs/<int:pk>/samples/<int:sample>.txt", samples.sample_text, name="run_sample_text"),
    path("runs/<int:pk>/events/", records.events, name="run_events"),
    path("runs/<int:pk>/log/", records.log, name="run_log"),
    path("runs/<int:pk>/checkpoints/", records.checkpoints, name="run_checkpoints"),
    path("runs/<int:pk>/configuration/", records.configuration, name="run_configuration"),
    path("runs/<int:pk>/stop/", changing.stop, name="run_stop"),
    path("runs/<int:pk>/resume/", changing.resume, name="run_resume"),
    path("runs/<int:pk>/rescore/", rescoring.rescore, name="run_rescore"),
    path("jobs/<int:pk>/", jobs.job, name="job"),
    path("runs/<int:pk>/edit/", changing.edit, name="run_edit"),
    path("runs/<int:pk>/priority/", queueing.priority, name="run_priority"),
    path("runs/<int:pk>/front/", queueing.front, name="run_front"),
]
