"""Datasets that are made by a program: name, parameters with their schema, and the rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from vantage_trainer.arithmetic import generate
from vantage_trainer.spec import setting

from vantage.datasets.models import DatasetVersion
from vantage.datasets.problems import NewRow
from vantage.datasets.store import create_version
from vantage.stored import Json
from vantage.teams.models import Team, User


class Arithmetic(BaseModel):
    model_config = ConfigDict(extra="forbid")

    num: Annotated[int, Field(ge=1, le=1_000_000)] = setting(4096, "Problems")
    seed: Annotated[int, Field(ge=0)] = setting(0, "Seed", "The same seed makes the same problems")
    terms: Annotated[int, Field(ge=2, le=16)] = setting(4, "Numbers in a sum")
    digits: Annotated[int, Field(ge=1, le=9)] = setting(1, "Digits of a number")
    estimates: Annotated[float, Field(ge=0, le=1)] = setting(
        0.0, "Estimates", "Share of solutions that are a quick guess instead of written steps; answers stay exact"
    )
    heldout: bool = setting(False, "Held out", "Problems that no training set of this generator ever holds")


@dataclass(frozen=True)
class Generator:
    title: str
    help: str
    schema: type[BaseModel]
    rows: Callable[..., Iterator[NewRow]]


def arithmetic_rows(num: int, seed: int, terms: int, digits: int, estimates: float, heldout: bool) -> Iterator[NewRow]:
    for row in generate(num, seed, terms=terms, digits=digits, estimates=estimates, heldout=heldout):
        yield NewRow(row["prompt"], row["answer"], row["solution"], dict(row["meta"]), "number")


GENERATORS = {
    "arithmetic": Generator(
        "Sums", "Sums whose answers need several written steps, with the steps as solution", Arithmetic, arithmetic_rows
    )
}


def create_generated(
    team: Team, user: User, name: str, generator: str, parameters: dict[str, int | float | bool]
) -> tuple[DatasetVersion, bool]:
    """Generate a version of the named dataset; the same parameters find the version they made before."""
    chosen = GENERATORS[generator]
    checked = chosen.schema.model_validate(parameters).model_dump()
    source: dict[str, Json] = {"kind": "generated", "generator": generator, "parameters": checked}
    return create_version(team, user, name, chosen.rows(**checked), source)
