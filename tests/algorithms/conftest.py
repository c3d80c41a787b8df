"""What the tests of the mathematics share: the oracle, random batches and the worked cases."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from oracle import Oracle


def random_batch(seed: int) -> dict:
    """Uneven interleaved groups, a flat one, a group of one, null rewards, an empty response, masked tokens."""
    draw = random.Random(seed)
    groups = [7] * 4 + [3] * 3 + [5] * 3 + [9] + [11] * 2
    rewards = [1.0, 0.0, None, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None]
    order = draw.sample(range(len(groups)), len(groups))
    lengths = [draw.randint(1, 6) for _ in groups]
    lengths[order[0]] = 0
    mask = [[int(draw.random() < 0.85) for _ in range(n)] for n in lengths]
    old = [[math.log(draw.uniform(0.05, 0.95)) for _ in range(n)] for n in lengths]
    near = {"logp_new": 0.35, "logp_behav": 0.2, "logp_ref": 0.4}
    moved = {
        name: [[min(v + draw.gauss(0, spread), -0.01) for v in row] for row in old] for name, spread in near.items()
    }
    values = [[draw.uniform(0, 1) for _ in range(n)] for n in lengths]
    return {
        "group": [groups[i] for i in order],
        "reward": [rewards[i] for i in order],
        "response_mask": mask,
        "truncated": [draw.random() < 0.2 for _ in groups],
        "logp_old": old,
        "value_old": values,
        "value_new": [[value + draw.gauss(0, 0.3) for value in row] for row in values],
    } | moved


@pytest.fixture
def oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture
def make_batch() -> Callable[[int], dict]:
    return random_batch


@pytest.fixture
def case() -> Callable[[str], dict]:
    folder = Path(__file__).parent / "cases"
    return lambda name: json.loads((folder / f"{name}.json").read_text())
