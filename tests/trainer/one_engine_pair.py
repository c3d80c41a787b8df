"""One generator and one policy for many short runs in this process: weights are put back and reach vLLM by a push."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer
from vantage_trainer import loop, ranks
from vantage_trainer.arithmetic import Row
from vantage_trainer.composition import Algorithm
from vantage_trainer.data import load
from vantage_trainer.demo import write_rows
from vantage_trainer.engine_state import AdamState
from vantage_trainer.generation import Generator
from vantage_trainer.journal import Journal
from vantage_trainer.policy import Policy
from vantage_trainer.presets import PRESETS
from vantage_trainer.progress import Progress
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.rollout import Sampler
from vantage_trainer.run import Run
from vantage_trainer.spec import RunSpec
from vantage_trainer.stopping import Stop
from vantage_trainer.thinking import answering
from vantage_trainer.tiny import make_tiny
from vantage_trainer.warm_start import warm_start


class EnginePair:
    """Starts both engines once; `begin` makes a run of a spec whose model, limits and optimizer are those of `spec`."""

    def __init__(self, folder: Path, spec: RunSpec, train: Iterable[Row], heldout: Iterable[Row]) -> None:
        ranks.prepare_environment()
        self.folder = folder
        self.model = make_tiny(folder / "model")
        roomy = with_algorithm(spec, PRESETS["scalerl"].algorithm)  # what it interrupts with has to fit too
        self.generator = Generator(self.model, spec=roomy, log=folder / "generator.log")
        self.generator.start()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.model)
        self.policy = Policy(self.model, spec.model_copy(update={"algorithm": PRESETS["ppo"].algorithm}))
        self.critic = self.policy.critic
        self.untrained = self.policy.state()
        for name, rows in {"train": train, **{one.name: heldout for one in spec.evaluation.sets}}.items():
            (folder / "data").mkdir(exist_ok=True)
            write_rows(folder / "data" / f"{name}.jsonl", rows)

    def begin(self, name: str, spec: RunSpec) -> Run:
        """Make a run that has not begun: its journal in a folder of its own, the policy as it is."""
        place = self.folder / "runs" / name
        shutil.rmtree(place, ignore_errors=True)
        self.policy.critic = self.critic if spec.algorithm.baseline.kind == "critic_gae" else None
        problems = {one: self._problems(one, spec) for one in ("train", *(s.name for s in spec.evaluation.sets))}
        return Run(
            folder=place,
            spec=spec,
            journal=Journal(place / "attempts" / "1" / "journal"),
            stop=Stop(place / "stop"),
            policy=self.policy,
            generator=self.generator,
            sampler=Sampler(self._answering(spec), self.tokenizer, Scorer(spec.reward), spec.rollout),
            tokenizer=self.tokenizer,
            problems=problems["train"],
            imitated=problems.pop("train"),
            heldout=problems,
            progress=Progress(),
        )

    def warmed(self, spec: RunSpec) -> AdamState:
        """Take the spec's warm start from the untrained weights; returns where reinforcement learning begins."""
        run = self.begin("warm-start", spec)
        self.policy.load_state(self.untrained)
        warm_start(run)
        return self.policy.state()

    def train(self, name: str, spec: RunSpec, start: AdamState) -> Run:
        """Train from the given weights with a fresh optimizer, to the end of the budget."""
        run = self.begin(name, spec.model_copy(update={"warm_start": None}))
        self.policy.load_state(start)
        warm_start(run)
        loop.train(run)
        return run

    def close(self) -> None:
        self.generator.close()
        self.policy.close()

    def _answering(self, spec: RunSpec) -> Any:
        return answering(self.generator, self.tokenizer, spec)

    def _problems(self, name: str, spec: RunSpec) -> list[Any]:
        return load(self.folder / "data" / f"{name}.jsonl", name, spec.model, spec.data, self.tokenizer)[0]


def with_algorithm(spec: RunSpec, algorithm: Algorithm) -> RunSpec:
    return spec.model_copy(update={"algorithm": algorithm})


def journal_of(run: Run, name: str) -> list[dict[str, Any]]:
    path = run.folder / "attempts" / "1" / "journal" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]
