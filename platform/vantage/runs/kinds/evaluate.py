"""Evaluation of a checkpoint or a model: what it refuses, the form's beginning, the result as table and curve."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

from vantage_trainer import chat_template, refused_datasets, unavailable
from vantage_trainer.jobspec import EvaluateSpec, JobSpec, MeasuredSet
from vantage_trainer.refusal import Refusal, refuse
from vantage_trainer.spec import Resources, RunSpec

from vantage.datasets.naming import lookup
from vantage.runs.figures import HIGH, LINE, LOW, Column, Figure, Pen
from vantage.runs.job_kind import Context, JobKind, results_of
from vantage.runs.models import Run
from vantage.teams.models import Team

CHART = "pass-at-k"
MOST_PROBLEMS = 400  # that the page lists
SHARED = ("model", "data", "reward", "rollout", "seed")
CHECKS = (
    refused_datasets.no_evaluation_data,
    refused_datasets.same_name_twice,
    refused_datasets.name_of_the_training_file,
    refused_datasets.more_than_sampled,
    *chat_template.CHECKS,
    unavailable.not_yet,
)


@dataclass(frozen=True)
class PassAt:
    """One point of the curve."""

    k: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SetResult:
    """One set's result: its curve, and n and c of every problem as (id, place among the problems, n, c)."""

    name: str
    step: int
    num: int
    length: float
    unscored: int
    curve: list[PassAt]
    problems: list[tuple[str, int, int]]

    @property
    def shown(self) -> list[tuple[str, int, int]]:
        return self.problems[:MOST_PROBLEMS]


def draft_for(parent: Run | None, checkpoint: str) -> EvaluateSpec:
    """Begin with what the run was evaluated on, so that the numbers can be compared."""
    if parent is None:
        return EvaluateSpec()
    spec = RunSpec.model_validate(parent.spec)
    sets = [MeasuredSet(**one.model_dump() | {"k": []}) for one in spec.evaluation.sets] or [MeasuredSet()]
    devices = Resources(
        generation_devices=spec.resources.generation_devices, tensor_parallel=spec.resources.tensor_parallel
    )
    return EvaluateSpec(
        checkpoint=checkpoint, sets=sets, resources=devices, **{name: getattr(spec, name) for name in SHARED}
    )


def refusals(team: Team, spec: JobSpec, parent: Run | None) -> Iterator[Refusal]:
    assert isinstance(spec, EvaluateSpec)
    asked = spec.as_run()
    for check in CHECKS:
        for refusal in check(asked):
            yield replace(refusal, path=refusal.path.removeprefix("evaluation."))
    sentence = "The team has no dataset version {reference}; choose one of its datasets."
    for number, one in enumerate(spec.sets):
        if one.dataset.strip() and lookup(team, one.dataset) is None:
            yield refuse("unknown_dataset", f"sets.{number}.dataset", sentence, reference=one.dataset)


def files(team: Team, spec: JobSpec, parent: Run | None) -> dict[str, int]:
    assert isinstance(spec, EvaluateSpec)
    found = {one.name: lookup(team, one.dataset) for one in spec.sets}
    return {name: version.pk for name, version in found.items() if version}


def sets_of(run: Run) -> list[SetResult]:
    """Each set that has been evaluated, from the results that the newest attempt told."""
    told = results_of(run)
    problems: dict[str, list[tuple[str, int, int]]] = {}
    for part in told:
        if part.get("what") == "problems":
            problems.setdefault(part["set"], []).extend(zip(part["ids"], part["n"], part["c"], strict=True))
    return [_set_result(one, problems.get(one["set"], [])) for one in told if one.get("what") == "summary"]


def _set_result(told: dict, problems: list[tuple[str, int, int]]) -> SetResult:
    curve = [PassAt(int(k), value, *told["intervals"][k]) for k, value in told["pass_at"].items()]
    return SetResult(told["set"], told["step"], told["num"], told["length"], told["unscored"], curve, problems)


def result(run: Run) -> Context:
    return {"sets": sets_of(run), "charts": [(CHART, "pass@k")], "answers": True}


def figures(run: Run) -> dict[str, Figure]:
    """pass@k over k, a line for each set with its 95% interval."""
    traces: Column = []
    sets = sets_of(run)
    for index, one in enumerate(sets):
        traces += _traces(one, index)
    ks: Column = [*sorted({point.k for one in sets for point in one.curve})]
    layout: Figure = {"xaxis": {"title": "k", "type": "log", "tickvals": ks, "ticktext": [str(k) for k in ks]}}
    return {CHART: {"data": traces, "layout": layout | {"yaxis": {"range": [0, 1]}}, "since": None}}


def _traces(one: SetResult, index: int) -> Iterator[Figure]:
    pen, xs = Pen(index), [point.k for point in one.curve]
    edge: Figure = {"type": "scatter", "mode": "lines", "line": {"width": 0, "color": pen.hue}, "hoverinfo": "skip"}
    low: Figure = {**edge, "x": [*xs], "y": [point.low for point in one.curve]}
    high: Figure = {**edge, "x": [*xs], "y": [point.high for point in one.curve]}
    line: Figure = {"type": "scatter", "mode": "lines+markers", "name": escape(one.name, quote=False)}
    line |= {"x": [*xs], "y": [point.value for point in one.curve], "marker": {"size": 5, "color": pen.hue}}
    line |= {"line": {"color": pen.hue, "dash": pen.dash, "width": 1.5}}
    label: Figure = {"role": "line", "label": one.name, "unit": "fraction", "smooth": False}
    yield _named(one, index, LOW, low, {"role": "edge"})
    yield _named(one, index, HIGH, high | {"fill": "tonexty", "fillcolor": f"{pen.hue}/18"}, {"role": "edge"})
    yield _named(one, index, LINE, line, label)


def _named(one: SetResult, index: int, rank: int, trace: Figure, meta: Figure) -> Figure:
    order = index * (LINE + 2) + rank
    return {**trace, "uid": f"set{index}-{rank}", "meta": {**meta, "key": one.name, "order": order}}


KIND = JobKind("Evaluation", refusals, files, result, figures=figures)
