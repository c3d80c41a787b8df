"""Addresses of this app."""

from django.urls import URLPattern, path

from vantage.datasets import creating, views

urlpatterns: list[URLPattern] = [
    path("", views.datasets, name="datasets"),
    path("new/", creating.new, name="dataset_new"),
    path("uploads/<uuid:pk>/", creating.map_columns, name="dataset_upload"),
    path("<int:pk>/", views.dataset, name="dataset"),
    path("<int:pk>/delete/", views.delete, name="dataset_delete"),
    path("<int:pk>/restore/", views.restore, name="dataset_restore"),
    path("<int:pk>/<int:number>/", views.dataset, name="dataset_version"),
    path("<int:pk>/<int:number>/rows/<int:row_number>/", views.row, name="dataset_row"),
    path("<int:pk>/<int:number>/rows.jsonl", views.download, name="dataset_download"),
]
