"""The web process' own look at silent nodes: where every node is dead, none is left to say that their runs are lost."""

import logging
import time
from threading import Thread

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from vantage.runs.silence import lose_silent

LOCK = 0x53696C65  # "Sile": Postgres' advisory lock of the one web process that looks just now
logger = logging.getLogger(__name__)


def begin() -> None:
    """Look after silent nodes in a thread of its own for as long as this process lives."""
    Thread(target=_keep_looking, name="web-sweep", daemon=True).start()


def look() -> int:
    """Call the runs of silent nodes lost, unless another web process is at it; returns how many were."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return 0
        try:
            return lose_silent()
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _keep_looking() -> None:
    """Right after a start or after Postgres was away heartbeats say nothing yet: nodes have one lease to beat again."""
    counts_from = time.monotonic() + settings.LEASE_SECONDS
    while True:
        time.sleep(settings.SWEEP_SECONDS)
        try:
            if lost := look() if time.monotonic() >= counts_from else _answers():
                logger.warning("%s runs of silent nodes are lost.", lost)
        except (OperationalError, InterfaceError) as error:
            logger.warning("Postgres is away: %s", str(error).strip().partition("\n")[0])
            counts_from = time.monotonic() + settings.LEASE_SECONDS
        finally:
            connection.close()


def _answers() -> int:
    connection.ensure_connection()
    return 0
