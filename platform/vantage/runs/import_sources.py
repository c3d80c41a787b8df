"""Where an import's records come from: an uploaded file, or one of a dataset on the hub."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from vantage_trainer import hub_data
from vantage_trainer.failure import Failure
from vantage_trainer.jobspec import HubFile, ImportSpec

from vantage.datasets import uploads
from vantage.datasets.columns import SAMPLE, Columns, guess, names
from vantage.datasets.models import Upload
from vantage.datasets.problems import NewRow, Problem
from vantage.datasets.reading import CHUNK, Record, file_format, records
from vantage.stored import Json

Watching = Callable[[Iterator[Record]], Iterator[Record]]


@dataclass(frozen=True)
class Source:
    """A file that can be read, the columns to take, and what the version will say of its origin."""

    path: Path
    format: str
    columns: Columns
    told: Mapping[str, Json]
    forget: Callable[[], None] = lambda: None

    @property
    def num_lines(self) -> int | None:
        """About how many records there are, where a line is one."""
        if self.format == "json":
            return None
        with self.path.open("rb") as file:
            return sum(piece.count(b"\n") for piece in iter(partial(file.read, CHUNK), b""))

    def rows(self, watching: Watching) -> Iterator[tuple[str, NewRow | Problem]]:
        return uploads.rows_of(watching(records(self.path, self.format)), self.columns)


def source_of(spec: ImportSpec, folder: Path) -> Source:
    """Find the file; Failure says in a sentence why there is none."""
    return _on_the_hub(spec, spec.hub, folder) if spec.hub else _uploaded(spec)


def _uploaded(spec: ImportSpec) -> Source:
    upload = Upload.objects.filter(pk=spec.upload).first()
    if upload is None:
        raise Failure("no_file", "The uploaded file is no longer kept: upload it again.")
    if not upload.path.exists():
        raise Failure(
            "no_file",
            "The uploaded file does not lie on this node: run a node beside the site, with the same VANTAGE_HOME, "
            "or upload the file again.",
        )
    told: dict[str, Json] = {"kind": "upload", "filename": upload.filename}
    columns = _columns(spec, upload.path, upload.format)
    return Source(upload.path, upload.format, columns, told, lambda: uploads.forget(upload))


def _on_the_hub(spec: ImportSpec, hub: HubFile, folder: Path) -> Source:
    fetched = hub_data.fetch(hub, folder / "data" / "hub")
    try:
        format = file_format(fetched.path, fetched.name)
    except ValueError as refused:
        raise Failure("bad_file", f"{fetched.name}: {refused}") from None
    told: dict[str, Json] = {"kind": "hub", "repository": hub.repository, "file": fetched.name}
    told["revision"] = fetched.revision
    return Source(fetched.path, format, _columns(spec, fetched.path, format), told)


def _columns(spec: ImportSpec, path: Path, format: str) -> Columns:
    """The mapping that was chosen, or the likely one; Failure where the file has no such column."""
    first = list(islice(records(path, format), SAMPLE))
    chosen = Columns.model_validate(spec.columns) if spec.columns else guess(first)
    known = names(first)
    wanted = [chosen.prompt, chosen.prompt_end, chosen.answer, chosen.solution]
    if missing := [name for name in wanted if name and name not in known]:
        offered = ", ".join(known[:20])
        raise Failure("no_column", f"The file has no column {missing[0]}; it has: {offered}. Choose among them.")
    return chosen
