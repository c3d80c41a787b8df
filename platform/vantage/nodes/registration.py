"""A node writes down what it is when it starts; names and GPUs belong to one living node at a time."""

import os
import socket
from importlib.metadata import version

from django.db import connection, transaction
from django.utils import timezone

from vantage.nodes.devices import Choice, Device, devices
from vantage.nodes.models import Node
from vantage.nodes.nvidia import gpus

LOCK = 0x4E6F6465  # "Node": Postgres' advisory lock of the one node that registers just now


def register(name: str, choice: Choice) -> tuple[Node, list[Device]]:
    """Write what this node is; returns it with the devices that it had before. ValueError: another one has them."""
    host, offered = socket.gethostname(), devices(choice)
    with transaction.atomic():
        connection.cursor().execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        _require_own_name(name, host)
        _require_own_gpus(name, host, offered)
        known = Node.objects.filter(name=name).first()
        fresh = {"host": host, "pid": os.getpid(), "version": version("vantage"), "devices": offered}
        times = {"started": timezone.now(), "heartbeat": timezone.now(), "draining": False, "removed": None}
        node, _ = Node.objects.update_or_create(name=name, defaults=fresh | times)
    return node, [*known.devices, *known.gone] if known else []


def _require_own_name(name: str, host: str) -> None:
    other = Node.objects.alive().filter(name=name).exclude(host=host).first()
    if other:
        raise ValueError(f"A node named {name} runs on {other.host}; choose another name with --name.")


def _require_own_gpus(name: str, host: str, offered: list[Device]) -> None:
    beside = Node.objects.alive().filter(host=host, draining=False).exclude(name=name)
    owners = {device["id"]: node.name for node in beside for device in node.devices if device["kind"] == "cuda"}
    taken = [str(device["id"]) for device in offered if device["id"] in owners]
    if not taken:
        return
    free = [str(device["id"]) for device in gpus() if device["id"] not in owners]
    advice = f"choose others, for example --devices {free[0]}" if free else "the processor is left, with --slots 1"
    raise ValueError(f"Node {owners[taken[0]]} on this machine gives out {', '.join(taken)} already: {advice}.")
