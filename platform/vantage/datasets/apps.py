from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "vantage.datasets"
    default_auto_field = "django.db.models.BigAutoField"
