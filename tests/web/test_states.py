"""The table of states is the whole truth about what can become of a run."""

from collections.abc import Callable

import pytest
from vantage.runs.models import Run
from vantage.runs.states import ACTIVE, OVER, TRANSITIONS, Kind, Status


@pytest.mark.parametrize("name", TRANSITIONS)
@pytest.mark.parametrize("status", Status.values)
def test_a_transition_moves_a_run_of_any_kind_only_from_the_states_it_names(
    make_run: Callable[..., Run], name: str, status: str
) -> None:
    runs = [make_run(status=status, kind=kind) for kind in Kind.values]
    sources, target, _ = TRANSITIONS[name]
    for run in runs:
        assert Run.objects.filter(pk=run.pk).move(name) == (status in sources)
    assert {run.status for run in Run.objects.all()} == {target if status in sources else status}


def test_every_state_can_be_reached_and_only_ended_ones_are_left_by_people_alone() -> None:
    reached, frontier = {Status.QUEUED.value}, [Status.QUEUED.value]
    while frontier:
        here = frontier.pop()
        after = {str(target) for sources, target, _ in TRANSITIONS.values() if here in sources} - reached
        reached |= after
        frontier += after
    assert reached == set(Status.values)
    assert {name for name, (sources, _, _) in TRANSITIONS.items() if set(sources) & set(OVER)} == {"resume"}


def test_every_state_at_work_has_a_way_out_for_each_end() -> None:
    for end in ("succeed", "fail", "stop"):
        assert set(TRANSITIONS[end][0]) == set(ACTIVE)
    left = {status for name in ("drain", "lose", "lose_stopping") for status in TRANSITIONS[name][0]}
    assert left == set(ACTIVE)
