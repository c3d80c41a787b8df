"""The Celery application; tasks import `app` from here and use `@app.task`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vantage.settings")


def broker(url: str) -> str:
    """Celery writes a unix socket as redis+socket://, redis-py as unix://."""
    return url.replace("unix://", "redis+socket://", 1)


if "CELERY_BROKER_URL" in os.environ:  # Celery's command sets it from our BROKER_URL, and it counts before settings
    os.environ["CELERY_BROKER_URL"] = broker(os.environ["CELERY_BROKER_URL"])
app = Celery("vantage")
app.config_from_object("vantage.celery_settings")
app.autodiscover_tasks(["vantage.runs", "vantage.nodes"])
