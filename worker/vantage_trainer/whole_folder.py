"""Folders that are there whole or not at all, also when several processes make them at once."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def make_whole(folder: Path, write: Callable[[Path], None], *, witness: str = "config.json") -> Path:
    """Have a folder written beside its place and renamed; one that holds the witness is left as it is."""
    if (folder / witness).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write(draft)
        for path in draft.iterdir():
            path.chmod(0o644)
        draft.chmod(0o755)
        os.rename(draft, folder)
    except OSError:  # another process was quicker, or an unfinished folder stands here
        if not (folder / witness).exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder
