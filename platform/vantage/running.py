"""What a `vantage up` writes down of itself, for a second one and for the one after a kill -9."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vantage.environment import MARK
from vantage.processes import Process, carrying, of_session

FILE = "up.json"


@dataclass
class Running:
    """The process, where it listens (empty before it does), and the leaders of its children's sessions."""

    owner: Process
    address: str = ""
    leaders: list[Process] = field(default_factory=list)

    @classmethod
    def read(cls, home: Path) -> "Running | None":
        """What was written last, of a process living or dead; None before the first."""
        try:
            found = json.loads((home / FILE).read_text())
        except FileNotFoundError:
            return None
        leaders = [Process(**leader) for leader in found["leaders"]]
        return cls(Process(**found["owner"]), found["address"], leaders)

    def write(self, home: Path) -> None:
        """Replace the file in one step."""
        beside = home / f".{FILE}"
        beside.touch(mode=0o600)
        beside.write_text(json.dumps(asdict(self)))
        os.replace(beside, home / FILE)

    def leftovers(self, home: Path) -> list[Process]:
        """What still runs in its children's sessions: not the supervisors and trainers, which have their own."""
        ours = set(carrying(MARK, str(home)))
        return [process for leader in self.leaders for process in of_session(leader.pid) if process in ours]
