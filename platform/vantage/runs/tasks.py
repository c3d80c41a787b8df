"""Celery's part: nudges. A lost one is made good by the sweep, a doubled one finds nothing to do."""

import logging
from threading import Thread

from kombu.exceptions import OperationalError as BrokerAway

from vantage.celery import app
from vantage.nodes.models import Node
from vantage.runs.dispatch import take_runs

PATIENCE = 0.15  # seconds
logger = logging.getLogger(__name__)


def queue_of(node: str) -> str:
    return f"node.{node}"


@app.task
def nudge(node: str) -> None:
    """Let a node take what waits for it."""
    take_runs(Node.objects.get(name=node))


def nudge_nodes() -> None:
    """Tell every living node that the queue has changed; who asked waits a moment for it, and not for the broker."""
    names = list(Node.objects.alive().values_list("name", flat=True))
    telling = Thread(target=_tell, args=[names], daemon=True)
    telling.start()
    telling.join(PATIENCE)


def _tell(names: list[str]) -> None:
    """Send the nudges; without a broker the nodes' sweep finds what is new in seconds."""
    try:
        for name in names:
            nudge.apply_async([name], queue=queue_of(name), retry=False, expires=60)
    except BrokerAway:
        logger.warning("The broker is away: nodes find new runs at their next sweep.")
