"""Write the demo as a run folder: `python -m vantage_trainer.demo RUN_FOLDER`, then train it."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from vantage_trainer import recipes
from vantage_trainer.arithmetic import Row


def write(folder: Path, *, seed: int = 0) -> None:
    """Write spec.json and data/ from the recipe."""
    spec = recipes.demo_spec(seed)
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "spec.json").write_text(spec.model_dump_json(indent=2))
    write_rows(data / "train.jsonl", recipes.DEMO_TRAIN.rows())
    for part in spec.evaluation.sets:
        write_rows(data / f"{part.name}.jsonl", recipes.DEMO_HELDOUT.rows())


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m vantage_trainer.demo", description="Write the demo's run folder.")
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write(arguments.run_folder, seed=arguments.seed)
    print(f"Now: python -m vantage_trainer.train {arguments.run_folder} --attempt 1")


if __name__ == "__main__":
    main()
