"""Addresses of this app."""

from django.urls import URLPattern, path

from vantage.algorithms import comparing, editing, explaining, views

urlpatterns: list[URLPattern] = [
    path("", views.algorithms, name="algorithms"),
    path("new/", editing.new, name="algorithm_new"),
    path("compare/", comparing.compared, name="algorithms_compared"),
    path("explain/", explaining.explain, name="algorithm_explain"),
    path("import/", editing.import_json, name="algorithm_import"),
    path("presets/<slug:name>/", views.preset, name="preset"),
    path("presets/<slug:name>.json", views.preset_json, name="preset_json"),
    path("<int:pk>/", views.algorithm, name="algorithm"),
    path("<int:pk>/edit/", editing.edit, name="algorithm_edit"),
    path("<int:pk>/delete/", views.delete, name="algorithm_delete"),
    path("<int:pk>/restore/", views.restore, name="algorithm_restore"),
    path("<int:pk>/<int:number>/", views.algorithm, name="algorithm_version"),
    path("<int:pk>/<int:number>.json", views.algorithm_json, name="algorithm_json"),
]
