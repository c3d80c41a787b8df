"""$VANTAGE_HOME: its folders, its secrets, and a place for sockets whose path is short enough."""

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from pathlib import Path

SOCKET_PATH_LIMIT = 107  # bytes, of a unix socket's path on Linux
LONGEST_SOCKET = "/postgres/.s.PGSQL.5432.lock"
SHORT_PLACE = Path("/tmp")
SPACE_NEEDED = 1 << 30  # bytes: two write-ahead segments, a demo's checkpoints and room to say that it is full


def private(folder: Path) -> Path:
    """Make a folder that only its owner may enter; what was there before is closed too."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def open_home(home: Path) -> Path:
    """Make $VANTAGE_HOME and its fixed folders, 0700 throughout."""
    try:
        private(home)
        for name in ("secrets", "logs", "runs"):
            private(home / name)
    except OSError as error:
        raise ValueError(
            f"Vantage cannot write its data to {home} ({error.strerror}): set VANTAGE_HOME to a folder of yours."
        ) from error
    return home


def require_space(folder: Path, needed: int = SPACE_NEEDED) -> None:
    """Refuse to start on a disk that is about to be full."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ValueError(
            f"No disk left: {free / 2**30:.1f} GiB are free under {folder}, and {needed / 2**30:.1f} GiB are needed. "
            "Free some, or set VANTAGE_HOME to a folder on another disk."
        )


def secret(home: Path, name: str) -> str:
    """Read a secret of this home; the first reader makes it (0600)."""
    path = home / "secrets" / name
    if not path.exists():
        private(path.parent)
        beside = path.with_name(f".{name}.{os.getpid()}")
        beside.touch(mode=0o600)
        beside.write_text(secrets.token_urlsafe(32))
        beside.rename(path)
    return path.read_text()


def socket_folder(home: Path) -> Path:
    """Where the sockets lie: in the home, or, when its path is too long for a socket, in a private short folder."""
    inside = home / "sockets"
    fits = len(os.fsencode(f"{inside}{LONGEST_SOCKET}")) <= SOCKET_PATH_LIMIT
    if fits and "," not in str(inside):  # libpq reads a comma as the end of one host
        return private(inside)
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    short = SHORT_PLACE / f"vantage-{os.geteuid()}-{digest}"
    short.mkdir(mode=0o700, exist_ok=True)
    _require_own(short)
    return short


def _require_own(folder: Path) -> None:
    """Refuse a folder that somebody else put there first."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != 0o700:
        raise ValueError(
            f"{folder} belongs to somebody else, and the path of VANTAGE_HOME is too long to hold sockets: "
            "set VANTAGE_HOME to a shorter path."
        )


class HomeLock:
    """At most one `vantage up` works on a home; the lock goes with its process, however that ends."""

    def __init__(self, home: Path) -> None:
        self.file = (home / "up.lock").open("a")

    def taken(self) -> bool:
        """Try to take it; False when another process holds it."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
