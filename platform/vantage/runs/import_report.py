"""What is wrong with a file, as one line of a journal: of any size, cut to what a page can show."""

from pydantic import JsonValue

from vantage.datasets.problems import Report
from vantage.text import showable

MOST_CHARACTERS = 300


def report_of(report: Report) -> dict[str, JsonValue]:
    problems: list[JsonValue] = [
        {"title": title, "total": total, "examples": [_cut(str(problem)) for problem in examples]}
        for title, total, examples in report.by_kind
    ]
    warnings: list[JsonValue] = [_cut(warning) for warning in report.warnings]
    return {"num_good": report.num_good, "num_bad": report.num_bad, "problems": problems, "warnings": warnings}


def _cut(text: str) -> str:
    return showable(text)[:MOST_CHARACTERS]
