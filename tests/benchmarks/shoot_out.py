"""Train every preset from the same start at the same budget, and print what came out.

    python tests/benchmarks/shoot_out.py [--presets grpo dapo] [--seeds 0 1 2] [--steps 40] [--folder PLACE]

The task is the demo's. One generator and one policy serve all runs; per seed all presets begin with the weights of one
warm start. A finished run is one line in PLACE/results.jsonl and is not repeated, so a stopped shoot-out goes on where
it was; runs of another number of steps are not counted.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))

from one_engine_pair import EnginePair, journal_of, with_algorithm  # noqa: E402 - found by the line above
from vantage_trainer import recipes  # noqa: E402
from vantage_trainer.engine_state import AdamState  # noqa: E402
from vantage_trainer.presets import PRESETS  # noqa: E402
from vantage_trainer.refusals import refusals  # noqa: E402
from vantage_trainer.run import Run  # noqa: E402
from vantage_trainer.spec import RunSpec  # noqa: E402

PASS_1, PASS_8, LENGTH = "eval/heldout/mean", "eval/heldout-8/pass@8", "eval/heldout/length"
TOKENS, SECONDS = "tokens/generated", "seconds"
COLUMNS = {"pass@1": PASS_1, "pass@8": PASS_8, "length": LENGTH, "tokens sampled": TOKENS, "seconds": SECONDS}
THINKING_BUDGET = 16  # of the demo's 24 tokens, for an algorithm that interrupts
# Student's t, 95%, two-sided, by degrees of freedom.
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
Result = dict[str, float]


def spec_of(preset: str, seed: int, steps: int) -> RunSpec:
    """The demo with another algorithm, evaluated at its end alone."""
    spec = with_algorithm(recipes.demo_spec(seed), PRESETS[preset].algorithm)
    spec.budget.steps, spec.evaluation.every_steps, spec.evaluation.before_first = steps, steps, False
    spec.checkpoint.every_steps = 0
    if spec.algorithm.sampling.interruption:
        spec.rollout.thinking_budget = THINKING_BUDGET
    return spec


def result_of(run: Run, seconds: float) -> Result:
    values = {name: value for row in journal_of(run, "metrics") for name, value in row["values"].items()}
    names = (PASS_1, PASS_8, LENGTH, TOKENS)
    return {name: values[name] for name in names} | {SECONDS: seconds - values["time/evaluate"]}


def start_of(pair: EnginePair, seed: int, warm_steps: int | None) -> tuple[AdamState, Result]:
    """Take the seed's warm start, and evaluate where all its runs begin."""
    spec = spec_of("grpo", seed, 1)
    assert spec.warm_start is not None
    spec.warm_start.steps = warm_steps or spec.warm_start.steps
    start = pair.warmed(spec)
    run = pair.begin("start", spec)
    run.sync()
    values = run.evaluate()
    return start, {name: values[name] for name in (PASS_1, PASS_8, LENGTH)} | {TOKENS: 0.0, SECONDS: 0.0}


class Ledger:
    """Finished runs, one line each."""

    def __init__(self, path: Path, steps: int) -> None:
        self._path, self._steps = path, steps
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [row for row in map(json.loads, lines) if row["steps"] == steps]
        self.found = {(row["preset"], row["seed"]): row["result"] for row in rows}

    def add(self, preset: str, seed: int, result: Result) -> None:
        self.found[preset, seed] = result
        with self._path.open("a") as file:
            file.write(json.dumps({"preset": preset, "seed": seed, "steps": self._steps, "result": result}) + "\n")


def shoot(
    pair: EnginePair, ledger: Ledger, presets: list[str], seeds: list[int], steps: int, warm_steps: int | None
) -> None:
    todo = [(name, seed) for seed in seeds for name in presets if (name, seed) not in ledger.found]
    for seed in dict.fromkeys(seed for _, seed in todo):
        start, at_start = start_of(pair, seed, warm_steps)
        ledger.add("(start)", seed, at_start)
        for name in [name for name, its in todo if its == seed]:
            began = time.perf_counter()
            run = pair.train(f"{name}-{seed}", spec_of(name, seed, steps), start)
            ledger.add(name, seed, result_of(run, time.perf_counter() - began))
            shown = ledger.found[name, seed]
            print(f"{todo.index((name, seed)) + 1} of {len(todo)}: {name}, seed {seed}: pass@1 {shown[PASS_1]:.3f}, "
                  f"{shown['seconds']:.0f} s", file=sys.stderr, flush=True)  # fmt: skip


def table(ledger: Ledger, presets: list[str], seeds: list[int], steps: int) -> Iterator[str]:
    yield f"Means over {len(seeds)} seeds after {steps} steps on 512 held-out problems, with 95% intervals over seeds."
    yield ""
    yield "| preset | seeds | " + " | ".join(COLUMNS) + " |"
    yield "| --- " * (len(COLUMNS) + 2) + "|"
    for name in ["(start)", *presets]:
        found = [ledger.found[name, seed] for seed in seeds if (name, seed) in ledger.found]
        if found:
            cells = [interval([result[key] for result in found]) for key in COLUMNS.values()]
            yield f"| {name} | {len(found)} | " + " | ".join(cells) + " |"


def interval(values: list[float]) -> str:
    """Write a mean with half the width of Student's interval."""
    digits = 3 if max(values) <= 1 else 1 if max(values) < 1000 else 0
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    half = T95.get(len(values) - 1, 1.96) * stdev(values) / math.sqrt(len(values))
    return f"{mean(values):.{digits}f} ± {half:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Train every preset at the same budget.")
    parser.add_argument("--presets", nargs="+", default=list(PRESETS), choices=list(PRESETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--folder", type=Path, default=Path("shoot-out"))
    parser.add_argument("--warm-start", type=int, help="steps of the warm start, fewer for a quick trial")
    given = parser.parse_args()
    able = [name for name in given.presets if not refusals(spec_of(name, 0, given.steps))]
    for name in set(given.presets) - set(able):
        print(f"{name} is left out: {refusals(spec_of(name, 0, given.steps))[0].sentence}", file=sys.stderr)
    given.folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(given.folder / "results.jsonl", given.steps)
    if any((name, seed) not in ledger.found for name in able for seed in given.seeds):
        pair = EnginePair(given.folder, recipes.demo_spec(), recipes.DEMO_TRAIN.rows(), recipes.DEMO_HELDOUT.rows())
        try:
            shoot(pair, ledger, able, given.seeds, given.steps, given.warm_start)
        finally:
            pair.close()
    print("\n".join(table(ledger, able, given.seeds, given.steps)))


if __name__ == "__main__":
    main()
