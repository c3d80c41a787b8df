"""The README's table of algorithms is the presets."""

from pathlib import Path

from vantage_trainer.presets import PRESETS

README = Path(__file__).parents[2] / "README.md"


def test_the_table_lists_every_preset_with_its_source() -> None:
    shown = [line for line in README.read_text().splitlines() if line.startswith("| `") and line.count("|") == 4]
    expected = [f"| `{preset.name}` | {preset.title} | {preset.source} |" for preset in PRESETS.values()]
    assert [line for line in shown if line in expected] == expected
