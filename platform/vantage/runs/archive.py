"""A folder as a tar file that is made while it is sent: nothing is written, little is held in memory."""

import asyncio
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

CHUNK = 1 << 20


async def tar_of(folder: Path, name: str) -> AsyncIterator[bytes]:
    """Yield a tar of the folder's files below `name`, read in a thread so that other requests go on."""
    pieces = _pieces(folder, name)
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


def size_of(folder: Path) -> int:
    """Bytes of the tar: what a browser needs to show how much is left."""
    blocks = sum(1 + -(-path.stat().st_size // tarfile.BLOCKSIZE) for path in files_in(folder))
    return (blocks + 2) * tarfile.BLOCKSIZE


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _pieces(folder: Path, name: str) -> Iterator[bytes]:
    for path in files_in(folder):
        info = tarfile.TarInfo(f"{name}/{path.relative_to(folder)}")
        info.size, info.mtime = path.stat().st_size, int(path.stat().st_mtime)
        yield info.tobuf(tarfile.GNU_FORMAT)
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
        yield b"\0" * (-info.size % tarfile.BLOCKSIZE)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)
