"""Fetch one file of rows from the model hub, or say in a sentence why there is none."""

import errno
from dataclasses import dataclass
from pathlib import Path

from vantage_trainer.failure import Failure
from vantage_trainer.jobspec import HubFile

ROWS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
NOT_TAKEN = (".parquet", ".arrow")
ABOUT = ("dataset_infos.json", "dataset_info.json", "state.json")  # JSON that holds no rows
SHOWN = 12
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES)


@dataclass(frozen=True)
class Fetched:
    path: Path
    name: str
    revision: str


def fetch(wanted: HubFile, folder: Path) -> Fetched:
    """Download the file that is meant; a broken download goes on where it broke off."""
    from huggingface_hub import HfApi, errors, hf_hub_download

    try:
        info = HfApi().dataset_info(wanted.repository, revision=wanted.revision, timeout=20)
        name = chosen(wanted, [entry.rfilename for entry in info.siblings or []])
        path = hf_hub_download(wanted.repository, name, repo_type="dataset", revision=info.sha, local_dir=folder)
    except errors.RepositoryNotFoundError:
        raise Failure(
            "no_dataset", f"The hub has no public dataset called {wanted.repository}: check its name."
        ) from None
    except errors.RevisionNotFoundError:
        raise Failure(
            "no_revision", f"{wanted.repository} has no revision {wanted.revision}: leave it empty."
        ) from None
    except errors.HFValidationError as fault:
        raise Failure("bad_name", f"The hub does not accept {wanted.repository}: {fault}") from None
    except Failure:
        raise
    except Exception as fault:  # the library's HTTP client has classes of its own, which change with its version
        if isinstance(fault, OSError) and fault.errno in DISK:
            raise
        raise Failure(
            "no_network",
            f"The dataset {wanted.repository} could not be fetched: this node has no network to the hub. "
            "Download its file elsewhere and upload it here.",
        ) from None
    return Fetched(Path(path), name, info.sha or "")


def chosen(wanted: HubFile, files: list[str]) -> str:
    """Choose the file that is meant among those of the dataset; Failure names those there are."""
    if wanted.file:
        if wanted.file not in files:
            raise Failure("no_file", f"{wanted.repository} has no file {wanted.file}; {_offer(files)}")
        return wanted.file
    rows = [name for name in files if name.lower().endswith(ROWS) and Path(name).name not in ABOUT]
    training = [name for name in rows if "train" in Path(name).name.lower()]
    for found in (rows, training):
        if len(found) == 1:
            return found[0]
    if not rows and any(name.lower().endswith(NOT_TAKEN) for name in files):
        raise Failure(
            "parquet_only",
            f"{wanted.repository} holds its rows as Parquet, which is not taken yet: "
            "save them as JSON Lines or CSV and upload that file.",
        )
    raise Failure("which_file", f"Say which file of {wanted.repository} is meant; {_offer(files)}")


def _offer(files: list[str]) -> str:
    rows = [name for name in files if name.lower().endswith(ROWS)] or files
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return f"it has: {', '.join(rows[:SHOWN])}{more}."
