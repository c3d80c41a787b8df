"""Runs that die at a chosen moment and go on, all in one process and on one generator, to compare what they repeat.

A death here is an exception that nothing handles: what a run has in memory is lost, what it wrote is there. That
processes which are killed leave the same behind is shown by tests with real ones.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from vantage_trainer import checkpoint, demo, loop, prepare, ranks, run, warm_start
from vantage_trainer.arithmetic import generate
from vantage_trainer.composition import DynamicSampling, Ema, Sampling
from vantage_trainer.generation import Generator
from vantage_trainer.journal import Journal
from vantage_trainer.metrics import is_clocked
from vantage_trainer.policy import Policy
from vantage_trainer.presets import PRESETS
from vantage_trainer.recipes import demo_spec
from vantage_trainer.run import Run
from vantage_trainer.spec import RunSpec
from vantage_trainer.stopping import Stop, Stopped

STEPS, WARM_STEPS = 5, 8
Place = tuple[str, int, str]  # stage, step, and a metric or a completion
Values = dict[Place, float | str]


class Killed(BaseException):
    """The end of an attempt that leaves nothing but what is on the disk."""


@dataclass(frozen=True)
class Case:
    """A kind of run, and where it dies: at this call of a function once so many steps of a stage are done."""

    name: str
    kind: str
    dies: tuple[object, str, int]
    after: int
    goes_on_from: int
    stage: str = "rl"
    is_asked: bool = False  # to stop, as by SIGTERM, instead of dying


CASES = (
    Case("between micro-batches", "grpo", (Policy, "_loss", 6), 3, 2),
    Case("during evaluation", "grpo", (run, "evaluate", 1), 4, 2),
    Case("in the warm start", "grpo", (Policy, "_loss", 2), 7, 6, "warm_start"),
    Case("with an EMA baseline", "ema", (Policy, "_loss", 2), 3, 2),
    Case("while sampling further batches", "dynamic", (loop, "_batch", 2), 3, 2),
)
MORE_CASES = (
    Case("between minibatches", "grpo", (Policy, "_update", 2), 3, 2),
    Case("between update and weight sync", "grpo", (Run, "sync", 1), 4, 2),
    Case("while a checkpoint is written", "grpo", (checkpoint, "_write_json", 1), 4, 2),
    Case("asked to stop amid a weight sync", "grpo", (Run, "sync", 1), 4, 4, is_asked=True),
    Case("with a critic", "ppo", (Policy, "_loss", 6), 3, 2),
    Case("with prompts that begin alike", "long", (Policy, "_loss", 6), 3, 2),
)


def spec_of(kind: str) -> RunSpec:
    """A small run with everything that a resume has to bring back; an epoch of its data ends amid it."""
    spec = demo_spec(seed=3)
    assert spec.warm_start is not None
    spec.warm_start.steps, spec.warm_start.batch = WARM_STEPS, 16
    spec.data.prompt_limit = 160
    spec.rollout.prompts_per_step, spec.rollout.group_size = 4, 4
    spec.evaluation.every_steps, spec.evaluation.sets = 2, spec.evaluation.sets[:1]
    spec.checkpoint.every_steps, spec.checkpoint.keep_last = 2, 10
    spec.optimization.tokens_per_microbatch = 64
    spec.optimization.schedule, spec.optimization.warmup_steps = "cosine", 2
    spec.budget.steps = STEPS
    if kind == "ema":
        spec.algorithm = spec.algorithm.model_copy(update={"baseline": Ema(momentum=0.5)})
    if kind == "dynamic":
        sampling = Sampling(dynamic_sampling=DynamicSampling(max_batches=3))
        spec.algorithm = PRESETS["dapo"].algorithm.model_copy(update={"sampling": sampling})
    if kind == "ppo":
        spec.algorithm = PRESETS["ppo"].algorithm
    if kind == "long":
        spec.model.system_prompt = "0" * 100
        spec.model.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    return spec


def write_folder(folder: Path, spec: RunSpec) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "spec.json").write_text(spec.model_dump_json())
    demo.write_rows(folder / "data" / "train.jsonl", generate(10, 1))
    demo.write_rows(folder / "data" / "heldout.jsonl", generate(16, 2, heldout=True))
    return folder


@contextmanager
def one_generator(model: Path, log: Path) -> Iterator[None]:
    """Let every attempt inside use the same generator process."""
    with patch.dict(os.environ):  # what says which rank this is must not reach a trainer that is started later
        ranks.prepare_environment()
        shared = Generator(model, spec=spec_of("grpo"), log=log)
        shared.start()
        try:
            with (
                patch.object(prepare, "Generator", lambda *given, **options: shared),
                patch.object(shared, "start"),
                patch.object(warm_start, "SPARING_SECONDS", 0),
            ):
                yield
        finally:
            shared.close()


def live(folder: Path, attempt: int, dies: Case | None = None) -> None:
    """Live one attempt to its end, or to its death."""
    place = folder / "attempts" / str(attempt)
    spec = RunSpec.model_validate_json((folder / "spec.json").read_text())
    journal = Journal(place / "journal")
    one = prepare.prepare(folder, place, spec, journal, Stop(place / "stop"))
    try:
        with deadly(one, dies):
            warm_start.warm_start(one)
            loop.train(one)
            one.save()
    except Killed:
        pass
    except Stopped:
        one.save()
    finally:
        journal.close()
        one.policy.close()


@contextmanager
def deadly(one: Run, case: Case | None) -> Iterator[None]:
    """Make a function raise Killed, or ask to stop, at its n-th call after so many steps of a stage."""
    if case is None:
        yield
        return
    owner, name, number = case.dies
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def counting(*given: object, **options: object) -> object:
        nonlocal calls
        if (one.progress.stage, one.progress.step) == (case.stage, case.after):
            calls += 1
            if calls == number and case.is_asked:
                one.stop.asked = True
            elif calls == number:
                raise Killed
        return original(*given, **options)

    with patch.object(owner, name, counting):
        yield
    raise AssertionError(f"{case.name}: the attempt did not die")


def told(folder: Path, attempt: int) -> Values:
    """Everything an attempt reported of its steps but what a clock decides."""
    found: Values = {}
    for line in lines(folder, attempt, "metrics"):
        stage = "warm_start" if "warm_start/loss" in line["values"] else "rl"
        found |= {(stage, line["step"], name): value for name, value in line["values"].items() if not is_clocked(name)}
    for line in lines(folder, attempt, "samples"):
        content = {name: line[name] for name in line.keys() - {"seq", "time", "version"}}
        found[("rl", line["step"], f"sample {line['group']}.{line['index']}")] = json.dumps(content, sort_keys=True)
    return found


def lines(folder: Path, attempt: int, name: str) -> list[dict[str, Any]]:
    path = folder / "attempts" / str(attempt) / "journal" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass(frozen=True)
class Comparison:
    """What a run that died told twice and once, against the same run that nobody interrupted."""

    twice: set[tuple[str, int]]
    num_values: int
    num_completions: int
    largest: float
    differing: list[Place]


def compared(folder: Path, whole: Values) -> Comparison:
    first, second = told(folder, 1), told(folder, 2)
    both = first.keys() & second.keys()
    pairs = [(place, one[place], whole.get(place)) for one in (first, second) for place in one]
    pairs += [(place, None, whole[place]) for place in whole.keys() - first.keys() - second.keys()]
    numbers = [(one, other) for _, one, other in pairs if isinstance(one, float) and isinstance(other, float)]
    return Comparison(
        twice={place[:2] for place in both},
        num_values=sum(not _is_completion(place) for place, _, _ in pairs),
        num_completions=sum(_is_completion(place) for place, _, _ in pairs),
        largest=max((abs(one - other) for one, other in numbers), default=0.0),
        differing=[place for place, one, other in pairs if repr(one) != repr(other)],
    )


def _is_completion(place: Place) -> bool:
    return place[2].startswith("sample ")
