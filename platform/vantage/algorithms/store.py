"""Saving, naming, deleting a team's algorithms."""

from django.db import transaction
from django.utils import timezone
from vantage_trainer.composition import Algorithm as Composition
from vantage_trainer.presets import PRESETS

from vantage.algorithms.models import Algorithm, AlgorithmVersion
from vantage.algorithms.spoken import NOT_YET, not_yet
from vantage.numbers import whole
from vantage.teams.audit import record
from vantage.teams.models import Team, User
from vantage.text import storable


@transaction.atomic
def save(team: Team, user: User, name: str, composition: Composition, note: str) -> tuple[AlgorithmVersion, bool]:
    """Save as the next version of the named algorithm: (version, True), or (the newest, False) if nothing changed."""
    if name in PRESETS:
        raise ValueError(f"{name} is the name of a preset: choose another, such as my-{name.replace('_', '-')}.")
    if composition.preset not in PRESETS:
        composition = composition.model_copy(update={"preset": None})
    algorithm, _ = Algorithm.objects.get_or_create(team=team, name=name, deleted=None, defaults={"created_by": user})
    Algorithm.objects.select_for_update().get(pk=algorithm.pk)  # versions are numbered one at a time
    newest = algorithm.versions.order_by("-number").first()
    if newest is not None and newest.parts == composition:
        return newest, False
    version = algorithm.versions.create(
        number=newest.number + 1 if newest else 1,
        composition=composition.model_dump(mode="json"),
        note=note,
        author=user,
    )
    record(team, user, "saved algorithm", str(version))
    return version, True


def find(team: Team, reference: str) -> Composition:
    """The composition that a preset's name or `name@number` means in the team. ValueError says what to change."""
    if reference in PRESETS:
        return PRESETS[reference].algorithm
    version = version_of(team, reference)
    if version is None:
        raise ValueError(f"There is no algorithm “{reference}” in this team: choose a preset or name@number.")
    return version.parts


def version_of(team: Team, reference: str) -> AlgorithmVersion | None:
    """The team's own version that `name@number` means."""
    name, _, number = reference.rpartition("@")
    versions = AlgorithmVersion.objects.of_team(team).filter(algorithm__name=storable(name))
    return versions.filter(number=meant).first() if (meant := whole(number, 2**31 - 1)) is not None else None


def title_of(reference: str) -> str:
    """What a preset is called on pages; an own version is called by its reference."""
    return PRESETS[reference].title if reference in PRESETS else reference


def choices(team: Team) -> list[tuple[str, str]]:
    """Presets and the team's own versions for a form's select: (reference, what is shown)."""
    presets = [(name, preset.title, preset.algorithm) for name, preset in PRESETS.items()]
    own = [(str(version), str(version), version.parts) for version in AlgorithmVersion.objects.of_team(team)]
    return [(name, f"{title} ({NOT_YET})" if not_yet(parts) else title) for name, title, parts in presets + own]


def delete(algorithm: Algorithm, user: User) -> None:
    """Hide an algorithm; runs keep their copy, and `restore` brings it back."""
    if Algorithm.objects.filter(pk=algorithm.pk, deleted=None).update(deleted=timezone.now()):
        record(algorithm.team, user, "deleted algorithm", algorithm.name)


def restore(algorithm: Algorithm, user: User) -> None:
    if Algorithm.objects.filter(team=algorithm.team, name=algorithm.name, deleted=None).exists():
        raise ValueError(f"Another algorithm is called {algorithm.name} now: delete that one first.")
    if Algorithm.objects.filter(pk=algorithm.pk).exclude(deleted=None).update(deleted=None):
        record(algorithm.team, user, "restored algorithm", algorithm.name)
