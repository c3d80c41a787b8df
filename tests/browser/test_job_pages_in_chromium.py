"""Pages of jobs in both themes and on a telephone; the curve is drawn, and an open page follows its job."""

import os
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from seed import people
from vantage.nodes.models import Node
from vantage.runs.announce import announce
from vantage.runs.models import Event, Run
from vantage.runs.states import Kind, Status
from vantage_trainer.recipes import demo_spec

pytestmark = pytest.mark.browser
LOOKS = (("light", 1280), ("dark", 1280), ("light", 400))
PATIENCE = 120_000  # ms: other tests may keep the machine busy
CURVES = {
    "heldout": {1: (0.52, 0.48, 0.56), 2: (0.63, 0.59, 0.67), 4: (0.72, 0.68, 0.76), 8: (0.80, 0.75, 0.84)},
    "longer <sums>": {1: (0.21, 0.17, 0.25), 2: (0.31, 0.26, 0.36), 4: (0.42, 0.36, 0.47)},
}


@pytest.fixture
def parent(transactional_db: None) -> Run:
    team, users, _ = people()
    node = Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])
    spec = demo_spec().model_dump(mode="json")
    fields = {"created_by": users["maya"], "node": node, "attempt": 1, "status": Status.SUCCEEDED}
    run = Run.objects.create(team=team, number=1, name="Demo: sums with GRPO", spec=spec, **fields)
    run.checkpoints.create(attempt=1, step=40, folder="checkpoints/step-000040", bytes=7_400_000)
    return run


def job(parent: Run, kind: str, status: str, sentence: str = "") -> Run:
    spec = {"kind": kind, "checkpoint": "step-000040", "sets": [{"name": name} for name in CURVES]}
    fields = {"spec": spec, "parent": parent, "node": parent.node, "attempt": 1, "created_by": parent.created_by}
    number = Run.objects.count() + 1
    name = f"{kind.capitalize()} of {parent.name} step-000040"
    return Run.objects.create(
        team=parent.team, number=number, name=name, kind=kind, status=status, sentence=sentence, **fields
    )


def tell(run: Run, kind: str, data: dict) -> None:
    seq = Event.objects.filter(run=run).count() + 1
    Event.objects.create(run=run, attempt=1, seq=seq, step=0, time=1.7e9 + seq, kind=kind, data=data)


def measure(run: Run, number: int, name: str) -> None:
    ids = [str(one) for one in range(1, 25)]
    told = {
        "what": "problems",
        "set": name,
        "step": number,
        "ids": ids,
        "n": [8] * 24,
        "c": [one % 9 for one in range(24)],
    }
    tell(run, "result", told)
    curve = CURVES[name]
    summary = {"what": "summary", "set": name, "step": number, "num": 24, "length": 17.25, "unscored": 0}
    summary |= {"pass_at": {str(k): value for k, (value, _, _) in curve.items()}}
    tell(run, "result", summary | {"intervals": {str(k): [low, high] for k, (_, low, high) in curve.items()}})


def shown(page: Page, name: str) -> None:
    """Keep a picture in the folder $SHOTS, where it is set."""
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_pages_of_jobs_complain_of_nothing_and_fit_every_screen(parent: Run, visit: Callable) -> None:
    evaluation = job(parent, Kind.EVALUATE, Status.SUCCEEDED, "step-000040: heldout pass@1 0.520 over 24 problems.")
    for number, name in enumerate(CURVES):
        measure(evaluation, number, name)
    export = job(parent, Kind.EXPORT, Status.SUCCEEDED, "Exported step-000040 to /var/lib/vantage/runs/3/output.")
    files = [{"name": "config.json", "bytes": 700}, {"name": "model.safetensors", "bytes": 2_412_000}]
    told = {"what": "folder", "folder": "/var/lib/vantage/runs/3/output", "files": files, "dtype": "float32"}
    tell(export, "result", told | {"tensors": 29, "parameters": 601_600, "tied": True, "system_prompt": "Think."})
    form = f"/jobs/new/evaluate/?from={parent.pk}&checkpoint=step-000040"
    paths = {"evaluation": f"/jobs/{evaluation.pk}/", "export": f"/jobs/{export.pk}/", "jobs": "/jobs/", "form": form}
    paths |= {"model": "/jobs/new/evaluate/", "checkpoints": f"/runs/{parent.pk}/checkpoints/"}
    for theme, width in LOOKS:
        visitor = visit("maya", theme=theme, width=width)
        visitor.page.set_default_navigation_timeout(PATIENCE)
        for name, path in paths.items():
            page = visitor.go(path)
            if name == "evaluation":
                expect(page.locator("[data-chart=pass-at-k] .main-svg").first).to_be_visible(timeout=PATIENCE)
                expect(page.locator(".legend")).to_contain_text("longer <sums>", timeout=PATIENCE)
            shown(page, f"{name}-{theme}-{width}")
            too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert too_wide <= 0 and visitor.complaints == [], (path, theme, width, visitor.complaints)


def test_an_open_page_follows_its_job(parent: Run, visit: Callable) -> None:
    evaluation = job(parent, Kind.EVALUATE, Status.RUNNING)
    visitor = visit("maya")
    visitor.page.set_default_navigation_timeout(PATIENCE)
    page = visitor.go(f"/jobs/{evaluation.pk}/")
    expect(page.locator("[data-part=result]")).to_contain_text("Nothing measured yet")
    tell(evaluation, "phase", {"name": "evaluating", "progress": {"done": 40, "total": 192}})
    announce(evaluation.pk, evaluation.team_id)
    expect(page.locator(".phase-fact")).to_contain_text("40 of 192", timeout=PATIENCE)
    measure(evaluation, 0, "heldout")
    Run.objects.filter(pk=evaluation.pk).update(status=Status.SUCCEEDED, sentence="heldout pass@1 0.520.")
    announce(evaluation.pk, evaluation.team_id)
    expect(page.locator("[data-part=result]")).to_contain_text("0.520", timeout=PATIENCE)
    expect(page.locator("[data-chart=pass-at-k] .main-svg").first).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".state").first).to_have_text("Succeeded", timeout=PATIENCE)
