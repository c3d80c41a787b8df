"""What may be said about whether a resumed run equals an uninterrupted one: checked, expected, or neither."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vantage_trainer.spec import RunSpec

from vantage.runs.repeats import Repeat

Machine = Mapping[str, object]  # what an attempt's trainer told of where it works
SAME = ("device", "processor", "ranks", "threads", "torch", "deepspeed", "vllm")
NAMES = {"ranks": "number of ranks", "threads": "number of threads"} | {
    name: f"version of {name}" for name in ("torch", "deepspeed", "vllm")
}


@dataclass(frozen=True)
class Verdict:
    """One attempt that went on: a short word for the header, the whole sentence, and what differs."""

    attempt: int
    title: str
    sentence: str
    repeat: Repeat | None = None
    is_bad: bool = False


def verdict(attempt: int, went_on: str, repeat: Repeat | None) -> Verdict:
    """Say of an attempt what the steps it computed again show (None: they have yet to come)."""
    if repeat is None:
        sentence = f"Attempt {attempt} went on {went_on}; what it computes again is compared once all of it has come."
        return Verdict(attempt, "compared soon", sentence)
    if not repeat.is_checked:
        sentence = f"Not checked: attempt {attempt} went on {went_on}, and no step was computed twice."
        return Verdict(attempt, "not checked", sentence)
    who = f"{_steps(repeat)} computed twice, by attempts {_listed([*repeat.attempts, attempt])}"
    what = f"{repeat.num_metrics} metrics and {repeat.num_completions:,} completions"
    if repeat.is_identical:
        sentence = f"Identical to uninterrupted: {who}, and agree in all {what}."
        return Verdict(attempt, "identical to uninterrupted", sentence, repeat)
    differ = f"{repeat.num_differences:,} differ{'s' if repeat.num_differences == 1 else ''}"
    sentence = f"Not identical: {who}; of {repeat.num_values:,} values of {what}, {differ}."
    return Verdict(attempt, f"{differ} from uninterrupted", sentence, repeat, is_bad=True)


def expectation(spec: RunSpec, machines: Mapping[int, Machine]) -> str:
    """Say what a run like this one repeats when it is resumed, and what may make it differ."""
    doubts = list(_doubts(spec, machines))
    if doubts:
        return " ".join(doubts)
    where = (
        "on the same processor with the same ranks, threads and versions in every attempt" if machines else "on a CPU"
    )
    return f"Expected to be exact: it is synchronous and works in float32 {where}."


def _doubts(spec: RunSpec, machines: Mapping[int, Machine]) -> Iterable[str]:
    if spec.resources.staleness > 0:
        yield "It is asynchronous: which weights an answer is sampled from depends on timing, so a resume differs."
    if spec.model.dtype != "float32":
        yield f"It works in {spec.model.dtype}, where only nearly equal values can be expected."
    if any(told.get("device") not in ("cpu", None) for told in machines.values()):
        yield (
            "On a GPU kernels may add in another order each time: last bits may differ, and sampled tokens with them. "
            "The order of prompts, seeds and learning rates stay the same."
        )
    for name in SAME:
        values = {number: told[name] for number, told in machines.items() if name in told}
        if len(set(map(str, values.values()))) > 1:
            yield _changed(name, values)


def _changed(name: str, values: Mapping[int, object]) -> str:
    told = ", ".join(f"attempt {number} {value}" for number, value in values.items())
    same = f"Not the same {NAMES.get(name, name)} in every attempt ({told})"
    return f"{same}: sums may be taken in another order, so last bits may differ."


def _steps(repeat: Repeat) -> str:
    parts = [
        f"{title} {low}" if low == high else f"{title}s {low}-{high}"
        for title, ends in (("warm-start step", repeat.warm_steps), ("step", repeat.steps))
        if ends
        for low, high in [ends]
    ]
    alone = len(parts) == 1 and "s " not in parts[0]
    return f"{' and '.join(parts) or 'an evaluation'} {'was' if alone or not parts else 'were'}"


def _listed(numbers: list[int]) -> str:
    found = [str(number) for number in sorted(set(numbers))]
    return f"{', '.join(found[:-1])} and {found[-1]}"
