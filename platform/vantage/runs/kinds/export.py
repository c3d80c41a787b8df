"""Export, as the site knows it."""

from vantage.runs.job_kind import JobKind

KIND = JobKind("Export")
