"""Processes that train together: rank 0 conducts, the others follow its commands."""

import ctypes
import os
import signal
import socket
import sys
from datetime import timedelta
from typing import Any

PR_SET_PDEATHSIG = 1
# Rank 0 may generate, evaluate or wait for long while the others wait for its next command.
PATIENCE = timedelta(days=7)


def launch(num_ranks: int) -> None:
    """Replace this process by torchrun with `num_ranks` copies of it, unless it is one of them already."""
    if num_ranks == 1 or "RANK" in os.environ:
        return
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, num_cores() // num_ranks)))
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(num_ranks)]
    arguments = [*torchrun, "-m", "vantage_trainer.train", *sys.argv[1:]]
    os.execv(sys.executable, [sys.executable, *arguments])


def num_cores() -> int:
    return len(os.sched_getaffinity(0))


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def follow_parent() -> None:
    """End with the launcher, and leave signals to rank 0."""
    if "RANK" not in os.environ:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL if rank() else signal.SIGTERM)
    if rank():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def prepare_environment() -> None:
    """Say who this process is among its peers when no launcher did, before any engine is imported."""
    if "RANK" in os.environ:
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


class Ranks:
    """What the ranks say to each other; every call is made by all of them."""

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist = dist
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        # Commands travel on the CPU, so that waiting for one keeps no accelerator busy.
        self._group = dist.new_group(backend="gloo", timeout=PATIENCE) if self.world > 1 else None
        self._members: list[Conducted] = []

    def admit(self, member: "Conducted") -> int:
        """Take in what lives on all ranks, in the same order everywhere; returns its place."""
        self._members.append(member)
        return len(self._members) - 1

    def follow(self) -> None:
        """Do what rank 0 does until it dismisses the others; the life of every other rank."""
        while (command := self.share(None)) is not None:
            place, name, arguments = command
            self._members[place].perform(name, arguments)

    def dismiss(self) -> None:
        """Let the other ranks go."""
        self.share(None)

    def share(self, message: Any) -> Any:
        """Return rank 0's message on every rank."""
        if self.world == 1:
            return message
        box = [message]
        self._dist.broadcast_object_list(box, src=0, group=self._group)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value on rank 0, an empty list elsewhere."""
        if self.world == 1:
            return [value]
        boxes: list[Any] = [None] * self.world if self.rank == 0 else []
        self._dist.gather_object(value, boxes if self.rank == 0 else None, dst=0, group=self._group)
        return boxes

    def in_order(self, mine: dict[int, Any]) -> list[Any]:
        """Put together on rank 0 what each rank found, by number."""
        found = {index: value for rank in self.gather(mine) for index, value in rank.items()}
        return [found[index] for index in range(len(found))]


class Conducted:
    """Lives on every rank: rank 0 calls a public method, and its namesake with an underscore runs on all of them."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self._place = ranks.admit(self)

    def perform(self, name: str, arguments: tuple[Any, ...]) -> Any:
        return getattr(self, f"_{name}")(*arguments)

    def _together(self, name: str, *arguments: Any) -> Any:
        assert self.ranks.rank == 0, "rank 0 calls, the others follow"
        self.ranks.share((self._place, name, arguments))
        return self.perform(name, arguments)
