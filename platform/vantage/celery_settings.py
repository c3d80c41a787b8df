"""Celery's settings: Postgres is the truth, so messages are nudges that may be lost or doubled."""

from django.conf import settings

from vantage.celery import broker

broker_url = broker(settings.BROKER_URL)
broker_connection_retry_on_startup = True
task_ignore_result = True
task_acks_late = False
task_serializer = "json"
accept_content = ["json"]
worker_prefetch_multiplier = 1
worker_hijack_root_logger = False
timezone = "UTC"
