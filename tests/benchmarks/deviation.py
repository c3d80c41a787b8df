"""Print each preset's largest deviation from plain float64 loops: `python tests/benchmarks/deviation.py [BATCHES]`.

Values against the same formula in loops, gradients against central finite differences, on random ragged batches.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "algorithms"))

from conftest import random_batch  # noqa: E402 - found by the line above
from oracle import Oracle  # noqa: E402
from vantage_trainer.composition import Algorithm  # noqa: E402
from vantage_trainer.objective import inspect  # noqa: E402
from vantage_trainer.presets import PRESETS  # noqa: E402

STEP = 1e-6


def deviations(algorithm: Algorithm, inputs: dict) -> tuple[float, float]:
    """Return the largest absolute deviation of the loss and of any gradient, those of a critic's values included."""
    found, wanted = inspect(algorithm, inputs, 64), Oracle(algorithm, inputs)
    values = [abs(found["loss"] - wanted.loss())]
    slopes = [abs(found["grad_logp"][i][t] - wanted.gradient(i, t)) for i, t in wanted.trained()]
    if wanted.by_token is not None:
        new, places = inputs["value_new"], wanted.trained()
        values.append(abs(found["value_loss"] - sum(wanted.value_loss(i, t, new[i][t]) for i, t in places)))
        slopes += [abs(found["grad_value"][i][t] - value_slope(wanted, i, t, new[i][t])) for i, t in places]
    return max(values), max(slopes)


def value_slope(wanted: Oracle, i: int, t: int, value: float) -> float:
    return (wanted.value_loss(i, t, value + STEP) - wanted.value_loss(i, t, value - STEP)) / (2 * STEP)


def main() -> None:
    num = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    print(f"Largest deviation over {num} random batches:\n\n| preset | value | gradient |\n| --- | --- | --- |")
    for name, preset in PRESETS.items():
        pairs = [deviations(preset.algorithm, random_batch(seed)) for seed in range(1, num + 1)]
        print(f"| {name} | {max(p[0] for p in pairs):.1e} | {max(p[1] for p in pairs):.1e} |", flush=True)


if __name__ == "__main__":
    main()
