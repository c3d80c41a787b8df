"""Tell the web processes that a run has news. Valkey may be away: streams look for themselves every few seconds."""

import json
from functools import cache

import redis
from django.conf import settings

CHANNEL = "vantage:runs"
PATIENCE = 0.15  # seconds: a form's answer and a journal's next lines wait for this


@cache
def valkey() -> redis.Redis:
    return redis.Redis.from_url(settings.BROKER_URL, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE)


def announce(run_pk: int, team_pk: int) -> None:
    """Publish that there is news of a run; what it is, the reader asks Postgres."""
    try:
        valkey().publish(CHANNEL, json.dumps({"run": run_pk, "team": team_pk}))
    except redis.RedisError:
        return  # the streams' own check makes it good
