"""The one door for new runs."""

from typing import Any

import pytest
from kombu import Connection
from vantage.datasets.models import Dataset, DatasetVersion, Row
from vantage.nodes.models import Node
from vantage.runs.create import Refused, create_run
from vantage.runs.models import Run
from vantage.runs.tasks import nudge
from vantage.teams.models import Team
from vantage_trainer.spec import (
    Data,
    Evaluation,
    EvaluationSet,
    Model,
    Resources,
    Rollout,
    RunSpec,
    TrainingSet,
    WarmStart,
)


def dataset(team: Team, name: str = "sums") -> None:
    version = Dataset.objects.create(team=team, name=name).versions.create(number=1, digest="", num_rows=1)
    version.rows.create(number=1, prompt="1+1=", answer="2")


def test_a_run_keeps_the_whole_spec_and_is_numbered_within_its_team(people: Any) -> None:
    dataset(people.team)
    spec = RunSpec(data=Data(train="sums@1"), model=Model(system_prompt="\x00 and \ud800"))
    runs = [create_run(people.team, people.member, "", spec) for _ in range(2)]
    assert [(run.number, run.name) for run in runs] == [(1, "run 1"), (2, "run 2")]
    assert RunSpec.model_validate(Run.objects.get(number=2).spec) == spec


def test_a_dataset_of_another_team_does_not_exist(people: Any) -> None:
    dataset(people.other_team)
    with pytest.raises(Refused) as refused:
        create_run(people.team, people.member, "mine", RunSpec(data=Data(train="sums@1")))
    assert [refusal.path for refusal in refused.value.refusals] == ["data.train"]
    assert not Run.objects.exists()


def test_more_ranks_than_any_node_has_cores_are_refused(people: Any) -> None:
    dataset(people.team)
    many = RunSpec(data=Data(train="sums@1"), resources=Resources(training_devices=64))
    create_run(people.team, people.member, "before there is a node", many)
    Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu", "cores": 2}])
    with pytest.raises(Refused, match="No node has 64 devices or processor cores") as refused:
        create_run(people.team, people.member, "many", many)
    assert [refusal.path for refusal in refused.value.refusals] == ["resources.training_devices"]
    Node.objects.create(name="n2", host="here", devices=[{"id": "cpu0", "kind": "cpu", "cores": 64}])
    create_run(people.team, people.member, "many", many)


def test_every_reason_is_told_at_once(people: Any) -> None:
    with pytest.raises(Refused) as refused:
        create_run(
            people.team, people.member, "mine", RunSpec(data=Data(train="nothing@7"), rollout=Rollout(group_size=1))
        )
    assert "sums" not in str(refused.value) and "nothing@7" in str(refused.value)


def test_without_a_broker_a_run_is_queued_all_the_same(
    people: Any, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    dataset(people.team)
    Node.objects.create(name="n1", host="here")
    sent = []

    def away(*arguments: object, **options: object) -> None:
        sent.append(arguments)
        with Connection("redis://127.0.0.1:1/0") as broker:
            broker.ensure_connection(max_retries=1)

    monkeypatch.setattr(nudge, "apply_async", away)
    with django_capture_on_commit_callbacks(execute=True):
        run = create_run(people.team, people.member, "mine", RunSpec(data=Data(train="sums@1")))
    assert run.status == "queued" and sent


def test_all_datasets_of_a_run_become_files_of_its_folder(people: Any) -> None:
    for name in ("sums", "more", "worked", "held"):
        dataset(people.team, name)
    Row.objects.filter(version__dataset__name="worked").update(solution="1+1=2")
    spec = RunSpec(
        data=Data(train="sums@1", more=[TrainingSet(dataset="more@1")]),
        warm_start=WarmStart(dataset="worked@1"),
        evaluation=Evaluation(sets=[EvaluationSet(name="held", dataset="held@1")]),
    )
    run = create_run(people.team, people.member, "several", spec)
    names = {file: DatasetVersion.objects.get(pk=pk).dataset.name for file, pk in run.datasets.items()}
    assert names == {"train": "sums", "train+2": "more", "train+start": "worked", "held": "held"}


def test_a_further_dataset_that_is_unknown_or_has_nothing_to_imitate_is_refused(people: Any) -> None:
    dataset(people.team)
    spec = RunSpec(
        data=Data(train="sums@1", more=[TrainingSet(dataset="more@1")]), warm_start=WarmStart(dataset="sums@1")
    )
    with pytest.raises(Refused, match="has none; turn it off or choose other data") as refused:
        create_run(people.team, people.member, "several", spec)
    assert {refusal.path for refusal in refused.value.refusals} == {"data.more.0.dataset", "warm_start"}
