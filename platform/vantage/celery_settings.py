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
# A form does not wait for a broker that is away: the nodes' sweep finds the run.
broker_transport_options = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
