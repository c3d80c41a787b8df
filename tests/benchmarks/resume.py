"""Does a run that dies and goes on equal the uninterrupted one? `python tests/benchmarks/resume.py` prints a table.

Words after the command choose the cases that hold one of them; "rank" stands for other numbers of ranks.

Each case runs on the real engines, once whole and once with a death amid it, and everything that both tell of the same
step is compared. The last rows go on with another number of ranks, where last bits may differ.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "worker"), str(ROOT / "tests" / "trainer")]
os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "worker"), "DEEPSPEED_LOG_LEVEL": "ERROR"}

from interrupted import (  # noqa: E402  # noqa: E402
    CASES,
    MORE_CASES,
    Case,
    Comparison,
    Values,
    compared,
    live,
    one_generator,
    spec_of,
    told,
    write_folder,
)
from vantage_trainer.model_source import resolve  # noqa: E402
from vantage_trainer.spec import RunSpec  # noqa: E402

HEAD = f"{'case':34} {'steps told twice':22} {'values':>7} {'completions':>11} {'differ':>7} {'largest difference':>18}"


@dataclass(frozen=True)
class Ranks:
    """A run that goes on after its second one with another number of ranks."""

    name: str
    first: int
    then: int


CHANGES = (Ranks("1 rank, then 2 (ZeRO 2)", 1, 2), Ranks("2 ranks (ZeRO 2), then 1", 2, 1))


def is_chosen(one: Case | Ranks) -> bool:
    return not sys.argv[1:] or any(word in one.name for word in sys.argv[1:])


def main() -> None:
    import torch

    torch.set_num_threads(1)
    root = Path(tempfile.mkdtemp(prefix="vantage-resume-"))
    os.environ["VANTAGE_MODELS"] = str(root / "models")
    print(HEAD, flush=True)
    try:
        with one_generator(resolve(spec_of("grpo").model, root / "models"), root / "generator.log"):
            wholes = compare_deaths(root)
        for change in filter(is_chosen, CHANGES):
            whole = wholes["grpo"]
            show(change.name, compared(two_attempts(root / f"ranks-{change.first}", change, whole), whole))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def compare_deaths(root: Path) -> dict[str, Values]:
    """Show each chosen case; returns what the uninterrupted runs told, by kind, for what else needs them."""
    chosen = [case for case in (*CASES, *MORE_CASES) if is_chosen(case)]
    needed = {case.kind for case in chosen} | ({"grpo"} if any(map(is_chosen, CHANGES)) else set())
    wholes = {kind: uninterrupted(root / kind, kind) for kind in sorted(needed)}
    for number, case in enumerate(chosen):
        show(case.name, compared(died_and_went_on(root / str(number), case), wholes[case.kind]))
    return wholes


def uninterrupted(folder: Path, kind: str) -> Values:
    live(write_folder(folder, spec_of(kind)), 1)
    return told(folder, 1)


def died_and_went_on(place: Path, case: Case) -> Path:
    folder = write_folder(place, spec_of(case.kind))
    live(folder, 1, case)
    live(folder, 2)
    return folder


def two_attempts(folder: Path, change: Ranks, whole: Values) -> Path:
    """Train two steps with some ranks and the rest with others, each attempt as processes of its own."""
    write_folder(folder, spec_of("grpo"))
    tokens = int(whole[("rl", 2, "tokens/generated")])
    for attempt, (ranks, budget) in enumerate(((change.first, tokens), (change.then, None)), start=1):
        spec = RunSpec.model_validate_json((folder / "spec.json").read_text())
        spec.resources.training_devices, spec.optimization.zero_stage = ranks, 2 if ranks > 1 else 0
        spec.budget.tokens = budget
        (folder / "spec.json").write_text(spec.model_dump_json())
        command = [sys.executable, "-m", "vantage_trainer.train", str(folder), "--attempt", str(attempt)]
        subprocess.run(command, stdout=subprocess.DEVNULL)
        end = json.loads((folder / "attempts" / str(attempt) / "exit.json").read_text())
        assert end["outcome"] == "succeeded", end
    return folder


def show(name: str, found: Comparison) -> None:
    stages: dict[str, list[int]] = {}
    for stage, step in sorted(found.twice):
        stages.setdefault(stage.replace("_", " "), []).append(step)
    twice = ", ".join(f"{stage} {min(steps)}-{max(steps)}" for stage, steps in stages.items()) or "none"
    numbers = f"{found.num_values:7} {found.num_completions:11} {len(found.differing):7} {found.largest:18.3g}"
    print(f"{name:34} {twice:22} {numbers}", flush=True)
    for name in sorted({place[2].split()[0] for place in found.differing})[:12]:
        print(f"    differs: {name} at step {min(step for _, step, key in found.differing if key.startswith(name))}")


if __name__ == "__main__":
    main()
