from django.apps import AppConfig


class AlgorithmsConfig(AppConfig):
    name = "vantage.algorithms"
    default_auto_field = "django.db.models.BigAutoField"
