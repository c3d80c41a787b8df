"""Two algorithms side by side: formula, parts and curves, with what differs marked."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET
from vantage_trainer.composition import Algorithm as Composition
from vantage_trainer.presets import PRESETS

from vantage.algorithms import store
from vantage.algorithms.describe import in_short, side_by_side
from vantage.algorithms.explaining import board, marked
from vantage.algorithms.formula.objective import formula
from vantage.teams.access import current_team
from vantage.teams.models import Team
from vantage.text import showable


@dataclass(frozen=True)
class Side:
    """One of the two."""

    reference: str
    title: str
    composition: Composition
    url: str

    @classmethod
    def of(cls, team: Team, reference: str) -> "Side":
        """Find it by its reference; ValueError says what to change."""
        composition = store.find(team, reference)
        return cls(reference, showable(store.title_of(reference)), composition, address(team, reference))

    def column(self, other: "Side") -> dict[str, object]:
        lines = marked(formula(self.composition), formula(other.composition))
        return {**vars(self), "short": in_short(self.composition), "formula": lines}


def address(team: Team, reference: str) -> str:
    if reference in PRESETS:
        return reverse("preset", args=[reference])
    version = store.version_of(team, reference)
    assert version is not None, "it was found by this reference"
    return reverse("algorithm_version", args=[version.algorithm_id, version.number])


@require_GET
def compared(request: HttpRequest) -> HttpResponse:
    """?left=grpo&right=mine@2, or against=mine@2 from an algorithm's own page"""
    team, asked = current_team(request), request.GET
    try:
        left = Side.of(team, asked.get("left", "grpo"))
        right = Side.of(team, asked.get("right") or asked.get("against") or "dr_grpo")
    except ValueError as refusal:
        messages.error(request, showable(str(refusal)))
        return redirect("algorithms")
    parts = side_by_side(left.composition, right.composition)
    context = board([left.reference, right.reference], request.GET) | {
        "section": "algorithms",
        "crumbs": [("Algorithms", reverse("algorithms")), ("Side by side", "")],
        "left": left.column(right),
        "right": right.column(left),
        "parts": parts,
        "num_others": sum(one.is_other for one in parts),
        "choices": store.choices(team),
    }
    return render(request, "algorithms/compared.html", context)
