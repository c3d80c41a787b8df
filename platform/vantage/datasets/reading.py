"""Read uploaded files record by record, never whole: JSON Lines, JSON arrays, CSV."""

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vantage.stored import DEEPEST, Json, is_deep

LONGEST_RECORD = 16 * 2**20
CHUNK = 2**20
NO_TEXT = re.compile("[\ud800-\udfff]")
DECODED_BADLY = re.compile("[\udc80-\udcff]")
MAGIC = {
    b"PAR1": "This is a Parquet file, which is not taken yet: save it as JSON Lines or CSV.",
    b"\x1f\x8b": "This file is compressed with gzip: unpack it first.",
    b"PK\x03\x04": "This is a ZIP archive or a spreadsheet: unpack it, or save it as CSV.",
    codecs.BOM_UTF16_LE: "This file is UTF-16: save it as UTF-8.",
    codecs.BOM_UTF16_BE: "This file is UTF-16: save it as UTF-8.",
}


class Written(float):
    """A number that remembers how it was written: 14.0 stays 14.0."""

    text: str

    def __new__(cls, text: str) -> "Written":
        number = super().__new__(cls, text)
        number.text = text
        return number


@dataclass(frozen=True)
class Record:
    """One record and where it stands; a record that cannot be read has a fault instead of columns."""

    place: str
    columns: dict[str, Json]
    fault: str = ""


def file_format(path: Path, filename: str) -> str:
    """Tell json, jsonl or csv by content, then by name. ValueError for what is not taken."""
    with path.open("rb") as file:
        head = file.read(4096)
    for magic, sentence in MAGIC.items():
        if head.startswith(magic):
            raise ValueError(sentence)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if not start and path.stat().st_size <= len(head):
        raise ValueError("The file is empty: choose one with at least one row.")
    if filename.lower().endswith((".csv", ".tsv", ".txt")) and start != b"{":
        return "csv"
    if start == b"[":
        return "json"
    named_json = filename.lower().endswith((".jsonl", ".ndjson", ".json"))
    return "jsonl" if start == b"{" or named_json else "csv"


def records(path: Path, format: str) -> Iterator[Record]:
    return {"json": json_items, "jsonl": json_lines, "csv": csv_rows}[format](path)


def json_lines(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_RECORD + 1):
            number += 1
            if len(line) > LONGEST_RECORD:
                yield Record(f"line {number}", {}, "is longer than 16 MiB.")
                while line and not line.endswith(b"\n"):
                    line = file.readline(CHUNK)
            elif line.strip():
                yield of_line(f"line {number}", line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)


def of_line(place: str, line: bytes) -> Record:
    try:
        return of_value(place, DECODER.decode(line.decode()))
    except UnicodeDecodeError as error:
        return Record(place, {}, f"is not UTF-8 from byte {error.start + 1} on: save the file as UTF-8.")
    except (ValueError, RecursionError) as error:
        return Record(place, {}, f"is not valid JSON: {reason(error)}.")


def of_value(place: str, value: Json) -> Record:
    if not isinstance(value, dict):
        return Record(place, {}, "is no JSON object: write each problem as {...}.")
    if is_deep(value):
        return Record(place, {}, f"is nested over {DEEPEST} levels deep: write it flatter.")
    columns = flat(value)
    if any(map(NO_TEXT.search, columns)):
        return Record(place, {}, "has a column name that is not UTF-8: rename that column.")
    return Record(place, columns)


def flat(value: dict[str, Json], prefix: str = "") -> dict[str, Json]:
    """Nested objects become columns with dotted names."""
    columns: dict[str, Json] = {}
    for key, item in value.items():
        if isinstance(item, dict) and item and prefix.count(".") < 4:
            columns |= flat(item, f"{prefix}{key}.")
        else:
            columns[f"{prefix}{key}"] = item
    return columns


def json_items(path: Path) -> Iterator[Record]:
    """Read the items of one array as they come; after broken JSON nothing more can be read."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        text, number, at_end = file.read(CHUNK).lstrip()[1:], 0, False
        while True:
            text = text.lstrip(" \t\r\n,")
            if text.startswith("]"):
                return
            try:
                value, used = DECODER.raw_decode(text)
                if used == len(text) and not at_end:
                    raise ValueError("a number may go on")
            except (ValueError, RecursionError) as error:
                more = "" if at_end or len(text) > LONGEST_RECORD else file.read(CHUNK)
                if not more and (at_end or len(text) > LONGEST_RECORD):
                    yield Record(f"item {number + 1}", {}, f"is not valid JSON: {reason(error)}.")
                    return
                at_end, text = not more, text + more
                continue
            number, text = number + 1, text[used:]
            yield decoded(of_value(f"item {number}", value))


def csv_rows(path: Path) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_RECORD)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        delimiter = likely_delimiter(file.readline(CHUNK))
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter)
        header = header_of(reader)
        line = reader.line_num + 1
        try:
            for fields in reader:
                if fields:
                    yield decoded(of_fields(f"line {line}", header, fields))
                line = reader.line_num + 1
        except csv.Error as error:
            yield Record(f"line {line}", {}, f"is not valid CSV: {error}.")


def of_fields(place: str, header: list[str], fields: list[str]) -> Record:
    if len(fields) != len(header):
        return Record(place, {}, f"has {len(fields)} fields where the header has {len(header)}.")
    return Record(place, dict(zip(header, fields, strict=True)))


def likely_delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def header_of(reader: Iterator[list[str]]) -> list[str]:
    """Read the columns' names. ValueError says what is wrong with the first line."""
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise ValueError(f"The first line is not valid CSV: {error}. Name the columns there.") from None
    if any(map(NO_TEXT.search, header)):
        raise ValueError("The first line is not UTF-8: save the file as UTF-8.")
    twice = next((name for name, num in Counter(header).items() if num > 1), None)
    if twice is not None:
        raise ValueError(f"Two columns are called “{twice[:100]}”: give each its own name in the first line.")
    return header


def decoded(record: Record) -> Record:
    """Bytes that were no UTF-8 came in as surrogates: name the record instead of keeping them."""
    if any(isinstance(value, str) and DECODED_BADLY.search(value) for value in record.columns.values()):
        return Record(record.place, {}, "is not UTF-8: save the file as UTF-8.")
    return record


def reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} at character {error.pos + 1}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def nothing(_: str) -> None:
    """NaN and infinities stand for missing values in files written by pandas."""


DECODER = json.JSONDecoder(parse_float=Written, parse_constant=nothing)
