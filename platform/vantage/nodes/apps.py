from django.apps import AppConfig


class NodesConfig(AppConfig):
    name = "vantage.nodes"
    default_auto_field = "django.db.models.BigAutoField"
