"""Export of a checkpoint as a Hugging Face folder: where it lies, and whether this site can hand it over."""

from vantage.runs.folder import RunFolder
from vantage.runs.job_kind import Context, JobKind, results_of
from vantage.runs.models import Run


def result(run: Run) -> Context:
    told = next((one for one in results_of(run) if one.get("what") == "folder"), None)
    files = told["files"] if told else []
    return {
        "folder": told,
        "bytes": sum(file["bytes"] for file in files),
        "is_here": bool(told) and RunFolder.of(run.pk).output.is_dir(),
    }


KIND = JobKind("Export", result=result)
