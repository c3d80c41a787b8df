"""The use of a run's node as metrics of the run: of each step the mean, in one row that is renewed while it lasts."""

import time

from django.db import connection, transaction

from vantage.nodes.usage import Gauge, Usage
from vantage.runs.journal_rows import COLUMNS, key_ids
from vantage.runs.models import Attempt

UPSERT = f"""
    INSERT INTO runs_metricrow ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (run_id, attempt, key_id, seq) DO UPDATE SET time = excluded.time, value = excluded.value"""


class NodeRows:
    """What a supervisor adds to its trainer's rows; `seq` is the step, so that a step has one row of each metric."""

    def __init__(self, attempt: Attempt, gauge: Gauge) -> None:
        self.attempt = attempt
        self.gauge = gauge
        self._step = -1
        self._seen: list[dict[str, float]] = []  # since the step began

    def ship(self) -> None:
        """Store what the gauge has seen since the last time, unless the attempt is fenced off."""
        usage = self.gauge.take()
        if usage is None:
            return
        with transaction.atomic():
            newest = Attempt.objects.select_for_update(of=("self",)).newest().filter(pk=self.attempt.pk).first()
            if newest is not None:
                self._store(max(newest.step, newest.resumed_from or 0), values(usage, self.attempt.devices))

    def _store(self, step: int, seen: dict[str, float]) -> None:
        self._seen = [*self._seen, seen] if step == self._step else [seen]
        self._step = step
        keys, place = key_ids(set(seen)), [step, step, time.time()]
        head = [self.attempt.run_id, self.attempt.number]
        rows = [[*head, keys[name], *place, mean([one[name] for one in self._seen if name in one])] for name in seen]
        with connection.cursor() as cursor:
            cursor.executemany(UPSERT, rows)


def values(usage: Usage, devices: list[str]) -> dict[str, float]:
    """Return the metrics of one look at the node; of its GPUs those that the run holds."""
    found = {"node/cpu/util": usage["cpu"], "node/memory/used": usage["memory"][0]}
    found["node/disk/free"] = usage["disk"][1] - usage["disk"][0]
    for name in devices:
        if name in usage["gpus"]:
            found[f"node/{name}/util"], found[f"node/{name}/memory"], _ = usage["gpus"][name]
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
