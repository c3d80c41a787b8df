"""A form's answer does not wait for a broker that is away."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from vantage.celery import app
from vantage.nodes.models import Node
from vantage.runs import announce, tasks
from vantage.runs.models import Run


@pytest.fixture(params=["refused", "silent"])
def broker_away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[None]:
    """No broker at all, and one that takes connections and never answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
    if request.param == "refused":
        listener.close()
    settings.BROKER_URL = url
    monkeypatch.setattr(tasks.nudge, "apply_async", lambda args, **options: _send(url, args))
    announce.valkey.cache_clear()
    yield
    announce.valkey.cache_clear()
    listener.close()


def _send(url: str, args: list[str]) -> None:
    with app.connection(url) as connection, connection.Producer() as producer:
        app.send_task(tasks.nudge.name, args, producer=producer, queue=tasks.queue_of(args[0]), retry=False)


def test_nobody_waits_for_a_broker_that_is_away(make_run: Callable[..., Run], broker_away: None) -> None:
    Node.objects.create(name="n1", host="here")
    run, begun = make_run(), time.monotonic()
    tasks.nudge_nodes()
    announce.announce(run.pk, run.team_id)
    assert time.monotonic() - begun < 0.4
