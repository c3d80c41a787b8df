"""What a trainer would report: curves that rise, with noise, spikes and values that are not finite."""

import math
import random

HELD_OUT = "eval/heldout/"


def warm_start(step: int, noise: random.Random) -> dict[str, float]:
    return {"warm_start/loss": 0.15 + 2.2 * math.exp(-step / 70) + noise.gauss(0, 0.02), "warm_start/lr": 1e-3}


def skill(step: int, speed: float) -> float:
    return 0.5 + 0.4 * (1 - math.exp(-step * speed / 60))


def evaluation(step: int, speed: float, noise: random.Random) -> dict[str, float]:
    passed = skill(step, speed) + noise.gauss(0, 0.006)
    found = {"pass@1": passed, "pass@4": min(1, passed + 0.09), "low": passed - 0.034, "high": passed + 0.033}
    return {HELD_OUT + name: value for name, value in (found | {"mean": passed, "length": 37.0}).items()}


def step_values(step: int, speed: float, noise: random.Random) -> dict[str, float]:
    """All that one step of reinforcement learning reports."""
    level, tokens = skill(step, speed), (step + 1) * 128 * 36
    return (
        rewards(level, noise)
        | lengths(step, level, noise)
        | updates(noise)
        | signal(level, noise)
        | costs(step, tokens, noise)
        | {"policy/entropy": 0.42 * math.exp(-step * speed / 150) + 0.05}
    )


def rewards(level: float, noise: random.Random) -> dict[str, float]:
    reward = level + noise.gauss(0, 0.03)
    return {
        "reward/mean": reward,
        "reward/std": math.sqrt(max(0, level * (1 - level))),
        "reward/part/numeric": reward,
        "reward/part/exact": reward - 0.04,
        "train/correct": min(1.0, max(0.0, reward)),
    }


def lengths(step: int, level: float, noise: random.Random) -> dict[str, float]:
    length = 31 + 8 * level + noise.gauss(0, 0.6)
    return {
        "length/mean": length,
        "length/max": 64,
        "length/correct": length - 1,
        "length/wrong": length + 3,
        "length/truncated_fraction": max(0, 0.04 - step * 0.0004),
    }


def updates(noise: random.Random) -> dict[str, float]:
    return {
        "clip/low": max(0, noise.gauss(0.004, 0.002)),
        "clip/high": max(0, noise.gauss(0.011, 0.003)),
        "policy/loss": noise.gauss(0, 0.02),
        "policy/kl_old": abs(noise.gauss(0.0008, 0.0002)),
        "policy/grad_norm": abs(noise.gauss(0.6, 0.1)),
        "policy/lr": 2e-4,
        "mismatch/kl": abs(noise.gauss(2e-6, 5e-7)),
        "mismatch/ess": 0.9999,
        "mismatch/max_ratio": 1.002 + abs(noise.gauss(0, 0.001)),
        "mismatch/logp_gap": abs(noise.gauss(2e-5, 4e-6)),
    }


def signal(level: float, noise: random.Random) -> dict[str, float]:
    parts = {"mixed": 0.75 - 0.5 * level, "all_correct": level - 0.3, "all_wrong": 0.05, "truncated": 0.03}
    shares = {name: max(0.0, value + noise.gauss(0, 0.01)) for name, value in parts.items()}
    whole = sum(shares.values())
    return {f"signal/{name}": value / whole for name, value in shares.items()} | {
        "signal/errored": 0.0,
        "signal/stale": 0.0,
    }


def costs(step: int, tokens: int, noise: random.Random) -> dict[str, float]:
    generate, train = 0.22 + noise.gauss(0, 0.01), 0.14 + noise.gauss(0, 0.008)
    return {
        "time/step": generate + train + 0.06,
        "time/generate": generate,
        "time/reward": 0.004,
        "time/train": train,
        "time/sync": 0.03,
        "time/evaluate": 1.1 if step % 20 == 0 else 0.0,
        "tokens/generated": tokens,
        "tokens/trained": tokens * 0.97,
        "tokens/per_second": 9800 + noise.gauss(0, 400),
        "compute/flops": tokens * 0.6e6 * 8,
        "compute/device_hours": step * 0.4 / 3600,
        "node/cpu/util": min(1, abs(noise.gauss(0.9, 0.05))),
        "node/memory/used": 2.1e9 + step * 1e5,
        "node/disk/free": 1.7e11 - step * 1e6,
    }


def spoiled(step: int, values: dict[str, float]) -> dict[str, float]:
    """What goes wrong now and then: NaN, infinity, one enormous spike."""
    wrong: dict[int, dict[str, float]] = {
        40: {"reward/mean": math.nan},
        41: {"reward/mean": math.nan, "policy/grad_norm": math.inf},
        60: {"reward/mean": 50.0},
        88: {"reward/mean": math.nan},
    }
    return values | wrong.get(step, {})
