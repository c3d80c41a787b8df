"""Whom Postgres runs as: it refuses root, so root hands it to a user of its own, wherever the folders lie."""

import ctypes
import os
import pwd
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PRIVATE_ID = 60832  # in the range that neither Debian nor systemd gives to anybody
NOBODY_ID = 65534
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
PR_SET_PDEATHSIG, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 28, 47, 2
SECBIT_NO_SETUID_FIXUP = 4
CAPABILITY_VERSION = 0x20080522
CLONE_NEWUSER = 0x10000000
_libc = ctypes.CDLL(None, use_errno=True)

NO_IDENTITY = (
    "Postgres does not run as root, and this container lets root neither become another user nor open a user "
    "namespace: run `vantage up` as an ordinary user, or point DATABASE_URL at a Postgres server."
)


@dataclass(frozen=True)
class Identity:
    """A user to run as; with a capability it passes folders that are closed to it; or root seen as nobody."""

    uid: int
    capability: int | None = None
    in_namespace: bool = False

    @property
    def owner(self) -> int:
        """Who owns its files, as seen from outside."""
        return os.geteuid() if self.in_namespace else self.uid

    def named(self) -> "Identity":
        """Stand in for it where a name is asked for: nobody, or, when we may not change user, ourselves seen so."""
        return Identity(NOBODY_ID, self.capability, in_namespace=self.uid == os.geteuid())

    def assume(self) -> None:
        """Become it; called in a child between fork and exec."""
        if self.in_namespace:
            _enter_namespace()
        elif self.uid != os.geteuid():
            _become(self.uid, self.capability)

    def then(self, bound: bool = False) -> Callable[[], None]:
        """Assume it in a child and, if bound, end with the thread that started the child."""

        def prepare() -> None:
            self.assume()
            if bound:
                _call("prctl", PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)

        return prepare


def choose(program: Path, folder: Path) -> Identity:
    """Find the least privileged identity that can start the program and own the folder; give it the folder."""
    if os.geteuid() != 0:
        return Identity(os.geteuid())
    for identity in _candidates():
        if _works(identity, program, folder):
            return identity
    raise ValueError(NO_IDENTITY)


def _candidates() -> Iterator[Identity]:
    for uid in (PRIVATE_ID, NOBODY_ID):
        for capability in (None, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):
            yield Identity(uid, capability)
    yield Identity(NOBODY_ID, in_namespace=True)


def _works(identity: Identity, program: Path, folder: Path) -> bool:
    """Try it: the program starts and the folder can be written."""
    try:
        os.chown(folder, identity.owner, identity.owner)
        probe = 'cd "$2" && : > .probe && rm .probe && exec "$1" --version'
        command = ["/bin/sh", "-c", probe, "sh", str(program), str(folder)]
        tried = subprocess.run(command, preexec_fn=identity.then(), capture_output=True, timeout=30)
    except (OSError, subprocess.SubprocessError):  # no right to chown or to change user, or the user is not mapped
        return False
    return tried.returncode == 0


def has_name(identity: Identity) -> bool:
    """Say whether the user stands in the password file; initdb asks for that, the server does not."""
    try:
        pwd.getpwuid(identity.uid)
    except KeyError:
        return False
    return True


def give(folder: Path, identity: Identity) -> None:
    """Make the identity the owner of a folder and of all below it."""
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, identity.owner, identity.owner, follow_symlinks=False)


def _become(uid: int, capability: int | None) -> None:
    if capability is not None:  # kept over the change of user, and in access(2), by which Postgres looks at its files
        _call("prctl", PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if capability is not None:
        header = struct.pack("Ii", CAPABILITY_VERSION, 0)
        _call("capset", header, struct.pack("6I", *[1 << capability] * 3, 0, 0, 0))
        _call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)


def _enter_namespace() -> None:
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{NOBODY_ID} {outer_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{NOBODY_ID} {outer_gid} 1")


def _call(name: str, *arguments: int | bytes) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
