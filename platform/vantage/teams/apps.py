from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "vantage.teams"
    default_auto_field = "django.db.models.BigAutoField"
