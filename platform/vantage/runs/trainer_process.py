"""The trainer as a process: started by this supervisor, or found alive where an earlier one started it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from django.conf import settings

from vantage.processes import Process, carrying, end
from vantage.runs.folder import RunFolder, is_held, write_whole

MARK = "VANTAGE_RUN_FOLDER"  # its value, the folder, is carried by all that works on the run, however far below
WITHHELD = re.compile(  # Celery puts the broker's address, password and all, into its workers' environment
    "CELERY_.*|PG.*|.*DATABASE_URL|.*BROKER_URL|.*REDIS_URL|REDISCLI_AUTH|.*SECRET_KEY|DJANGO_SETTINGS_MODULE"
)
LOCK_TAKEN = 3  # exit code of a trainer that found another one at work
REST_SECONDS = 5.0


class TrainerProcess:
    """At most one trainer works on a run: it holds the folder's lock, which outlives supervisors."""

    def __init__(self, folder: RunFolder, number: int, module: str, reaches_services: bool = False) -> None:
        self.folder = folder
        self.module = module
        self.reaches_services = reaches_services
        self.attempt = folder.attempt(number)
        self.number = number
        self.process = self._known()
        self._child: subprocess.Popen[bytes] | None = None

    def _known(self) -> Process | None:
        try:
            told = json.loads(self.attempt.trainer.read_text())
            return Process(told["pid"], told["started"])
        except (OSError, ValueError, KeyError):
            return None

    @property
    def was_started(self) -> bool:
        return self.process is not None or self.attempt.exit.exists()

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it lives or when the trainer was not our child."""
        return None if self._child is None or self._child.poll() == LOCK_TAKEN else self._child.returncode

    def alive(self) -> bool:
        if self._child and self._child.poll() != LOCK_TAKEN:
            return self._child.returncode is None
        return bool(self.process and self.process.alive()) or is_held(self.folder.trainer_lock)

    def start(self, devices: list[str], cores: set[int]) -> None:
        """Start it on its devices and cores (none: all), in a session of its own, without the site's secrets.

        Reward code must not reach the services; what runs none, and works on them, is given the way there.
        """
        command = [sys.executable, "-P", "-m", self.module, str(self.folder.path)]
        with self.attempt.log.open("ab") as log:
            self._child = subprocess.Popen(
                [*command, "--attempt", str(self.number)],
                cwd=self.folder.path,
                env=environment(self.folder.path, devices) | (dict(os.environ) if self.reaches_services else {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if kept := cores & os.sched_getaffinity(0):
            os.sched_setaffinity(self._child.pid, kept)  # before it has another thread: what it starts inherits them
        self.process = Process.of(self._child.pid)
        write_whole(self.attempt.trainer, json.dumps({"pid": self.process.pid, "started": self.process.started}))

    def ask(self, word: str) -> None:
        """Ask it to write a checkpoint and end: `stop` or `drain`; by a signal where the disk takes no file."""
        try:
            if not self.attempt.stop.exists():
                write_whole(self.attempt.stop, word)
        except OSError:
            self.terminate()

    def terminate(self) -> None:
        if self.process:
            self.process.send(signal.SIGTERM)

    def end_rest(self) -> None:
        """End the trainer, of whatever attempt, and all it left behind in any session; then its lock is free."""
        rest = carrying(MARK, str(self.folder.path))
        end([process for process in rest if process.pid != os.getpid()], signal.SIGKILL, REST_SECONDS)
        deadline = time.monotonic() + REST_SECONDS
        while is_held(self.folder.trainer_lock) and time.monotonic() < deadline:
            time.sleep(0.02)  # a process' last threads outlive the first one by a moment
        if self._child:
            self._child.wait()


def environment(folder: Path, devices: list[str]) -> dict[str, str]:
    """Return the trainer's environment: ours, without what opens the services, and with only its own GPUs."""
    ours = {name: value for name, value in os.environ.items() if not WITHHELD.fullmatch(name)}
    models = {"VANTAGE_MODELS": os.environ.get("VANTAGE_MODELS") or str(Path(settings.HOME) / "models")}
    cuda = [device.removeprefix("cuda") for device in devices if device.startswith("cuda")]
    seen = _visible(cuda) if cuda else {}
    return ours | models | {MARK: str(folder), "PYTHONUNBUFFERED": "1"} | seen


def _visible(cuda: list[str]) -> dict[str, str]:
    """Number GPUs as nvidia-smi does."""
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(cuda)}
