"""The presets in code against the table that the formula sheets are written for."""

import json
from pathlib import Path

import pytest
from vantage_trainer.composition import Algorithm
from vantage_trainer.presets import PRESETS, Preset

TABLE = json.loads((Path(__file__).parent / "cases" / "presets.json").read_text())


def test_every_preset_of_the_table_exists_and_no_other() -> None:
    assert set(PRESETS) == set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_a_preset_equals_its_row(name: str) -> None:
    row = Algorithm.model_validate(TABLE[name]["algorithm"])
    assert PRESETS[name].algorithm == row.model_copy(update={"preset": name})


@pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
def test_a_preset_tells_its_source_its_values_and_where_others_differ(preset: Preset) -> None:
    assert preset.name == preset.algorithm.preset
    assert all(text.strip() for text in (preset.title, preset.source, preset.defaults, preset.differs))


def test_a_preset_survives_the_way_through_json() -> None:
    for preset in PRESETS.values():
        assert Algorithm.model_validate_json(preset.algorithm.model_dump_json()) == preset.algorithm
