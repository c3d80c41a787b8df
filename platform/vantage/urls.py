"""The site's addresses, app by app."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("vantage.teams.urls")),
    path("algorithms/", include("vantage.algorithms.urls")),
    path("datasets/", include("vantage.datasets.urls")),
    path("nodes/", include("vantage.nodes.urls")),
    path("", include("vantage.runs.urls")),
]
