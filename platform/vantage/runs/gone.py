"""Devices that are no longer there when a node starts again: shown, never given out, and told to who holds one."""

import time

from django.utils import timezone

from vantage.nodes.devices import Device
from vantage.nodes.models import Node
from vantage.nodes.nvidia import gpus
from vantage.runs.announce import announce
from vantage.runs.journal_rows import MOST
from vantage.runs.models import Attempt, Event

SENTENCE = (
    "Device {devices} is no longer there since node {node} has started again. "
    "If the run fails of that, it goes on with other devices of the node, or waits for them."
)


def note_gone(node: Node, earlier: list[Device]) -> None:
    """Write down which of a node's earlier devices have vanished; one that was only not chosen again has not."""
    here = {device["id"] for device in node.devices}
    live = list(node.attempts.live().select_related("run"))
    held = {device for attempt in live for device in attempt.devices}
    present = {device["id"] for device in gpus()}
    missing = [one for one in earlier if one["id"] not in here]
    gone = [one for one in missing if one["id"] in held or (one["kind"] == "cuda" and one["id"] not in present)]
    now = timezone.now().isoformat()
    Node.objects.filter(pk=node.pk).update(gone=[{"gone": now} | one for one in gone])
    for attempt in live:
        _tell(attempt, node, [device for device in attempt.devices if device not in here])


def _tell(attempt: Attempt, node: Node, missing: list[str]) -> None:
    """Warn a run that holds devices which have vanished; once, however often the node starts."""
    if not missing:
        return
    sentence = SENTENCE.format(devices=", ".join(missing), node=node.name)
    place = {"seq": MOST - 1, "step": attempt.step, "time": time.time()}  # the trainer's own lines never come so far
    told = Event(run_id=attempt.run_id, attempt=attempt.number, kind="warning", data={"sentence": sentence}, **place)
    Event.objects.bulk_create([told], ignore_conflicts=True)
    announce(attempt.run_id, attempt.run.team_id)
