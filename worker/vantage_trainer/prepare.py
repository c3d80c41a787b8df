"""Put a run together: model, generator, data, policy, and the last checkpoint when there is one."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from vantage_trainer import checkpoint, fork
from vantage_trainer.checkpoint import Snapshot
from vantage_trainer.critic import Critic
from vantage_trainer.data import Problem, Tokenizer, load
from vantage_trainer.data_files import FIRST, id_in, imitated_file, training_files
from vantage_trainer.failure import Failure
from vantage_trainer.generation import Generator
from vantage_trainer.journal import Journal
from vantage_trainer.machine import machine
from vantage_trainer.model_source import resolve
from vantage_trainer.policy import Policy
from vantage_trainer.progress import Progress
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.rollout import Sampler
from vantage_trainer.run import Run
from vantage_trainer.spec import RunSpec
from vantage_trainer.stopping import Stop
from vantage_trainer.thinking import answering


def prepare(folder: Path, place: Path, spec: RunSpec, journal: Journal, stop: Stop) -> Run:
    """Start the generator first: its engine comes up while everything else is loaded and warm-started."""
    journal.phase(0, "loading")
    scorer = Scorer(spec.reward)
    model = model_folder(folder, spec)
    tokenizer = tokenizer_of(model)
    problems, imitated = training_problems(folder / "data", spec, tokenizer, journal)
    heldout = {
        part.name: problems_of(folder / "data" / f"{part.name}.jsonl", part.name, spec, tokenizer, journal)
        for part in spec.evaluation.sets
    }
    if spec.warm_start is not None and not any(problem.solution for problem in imitated):
        raise Failure("no_solutions", "The warm start needs rows with a solution, and its dataset has none.")
    snapshot = _last_snapshot(folder, journal, int(place.name))
    parent = fork.read(folder) if snapshot is None else None
    generator = Generator(model, spec=spec, log=place / "generator.log")
    generator.start()
    run = Run(
        folder=folder,
        spec=spec,
        journal=journal,
        stop=stop,
        policy=Policy(model, spec),
        generator=generator,
        sampler=Sampler(answering(generator, tokenizer, spec), tokenizer, scorer, spec.rollout),
        tokenizer=tokenizer,
        problems=problems,
        imitated=imitated,
        heldout=heldout,
        progress=Progress(),
    )
    journal.event(run.progress.step, "machine", machine(run.policy.ranks.world))
    if snapshot is not None:
        resume(run, snapshot)
    elif parent is not None:
        fork.begin(run, parent)
    return run


def resume(run: Run, snapshot: Snapshot) -> None:
    """Go on exactly where a checkpoint was written, whatever the ZeRO stage and the number of ranks are now."""
    checkpoint.check_fits(snapshot, dict(run.policy.weights()))
    run.policy.load_state(snapshot.adam)
    run.policy.set_random_states(snapshot.random)
    if snapshot.reference:
        run.policy.freeze_reference(snapshot.reference)
    if run.policy.critic is not None and snapshot.progress.stage == "rl":
        _resume_critic(run.policy.critic, snapshot)
    run.progress = snapshot.progress
    run.kept = (snapshot.progress.stage, snapshot.progress.step)


def _resume_critic(critic: Critic, snapshot: Snapshot) -> None:
    if snapshot.critic is None:
        raise Failure("no_critic", "The checkpoint holds no critic, and the algorithm needs one: fork the run instead.")
    critic.load_state(snapshot.critic)


def model_folder(folder: Path, spec: RunSpec) -> Path:
    """Find the model; what has to be made or fetched is kept in the run folder unless the node names a place."""
    return resolve(spec.model, Path(os.environ.get("VANTAGE_MODELS", folder / "models")))


def tokenizer_of(model: Path) -> Tokenizer:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    return tokenizer


def training_problems(
    data: Path, spec: RunSpec, tokenizer: Tokenizer, journal: Journal
) -> tuple[list[Problem], list[Problem]]:
    """Read what is asked and what the warm start imitates; ids tell further files apart."""
    problems = [
        replace(problem, id=id_in(file, problem.id))
        for file, dataset in training_files(spec).items()
        for problem in problems_of(data / f"{file}.jsonl", file if file == FIRST else dataset, spec, tokenizer, journal)
    ]
    own = [
        problem
        for file, dataset in imitated_file(spec).items()
        for problem in problems_of(data / f"{file}.jsonl", dataset, spec, tokenizer, journal)
    ]
    return problems, own or problems


def problems_of(path: Path, name: str, spec: RunSpec, tokenizer: Tokenizer, journal: Journal) -> list[Problem]:
    """Read a dataset of the run folder, and warn of rows that were dropped."""
    problems, dropped = load(path, name, spec.model, spec.data, tokenizer)
    if dropped:
        shown = ", ".join(dropped[:5]) + (f" and {len(dropped) - 5} more" if len(dropped) > 5 else "")
        journal.warning(0, f"{len(dropped)} rows of {name} were dropped for prompts over the limit: {shown}.")
    return problems


def _last_snapshot(folder: Path, journal: Journal, attempt: int) -> Snapshot | None:
    """Read the newest whole checkpoint and tell which it is: what earlier attempts did past it is repeated."""
    snapshot, sentences = checkpoint.load_last(folder / "checkpoints")
    for sentence in sentences:
        journal.warning(0, f"{sentence} An older one is used instead.")
    if snapshot is not None:
        at = snapshot.progress
        told: dict[str, JsonValue] = {"from_step": at.step, "stage": at.stage, "checkpoint": f"checkpoints/{at.folder}"}
        journal.event(at.step, "resumed", told)
    elif attempt > 1:
        journal.event(0, "resumed", {"from_step": None, "stage": "warm_start", "checkpoint": None})
    return snapshot
