"""What a run's algorithm is called: the preset or the version that it was taken from, and whether it was changed."""

from collections.abc import Iterable, Sequence

from vantage_trainer.presets import PRESETS

from vantage.algorithms.models import AlgorithmVersion
from vantage.text import storable

Used = tuple[int, dict]  # a team and a composition as a run of it stores it


def labels(used: Sequence[Used]) -> list[str]:
    """Name each composition; `changed` where it computes something else than what it is named after."""
    versions = compositions(used)
    return [label(composition, versions.get((team, reference_of(composition)), ())) for team, composition in used]


def label(composition: dict, versions: Iterable[dict]) -> str:
    name = reference_of(composition)
    preset = PRESETS.get(name)
    meant = [preset.algorithm.model_dump(mode="json")] if preset else list(versions)
    unnamed = {**composition, "preset": None}
    is_changed = bool(meant) and unnamed not in [{**one, "preset": None} for one in meant]
    return f"{name}, changed" if is_changed else name or "own"


def compositions(used: Sequence[Used]) -> dict[tuple[int, str], list[dict]]:
    """What each team's `name@number` among these means or meant: a deleted algorithm's name can be taken again."""
    names = {(team, storable(reference_of(one).rpartition("@")[0])) for team, one in used if "@" in reference_of(one)}
    if not names:
        return {}
    teams, called = zip(*names, strict=True)
    rows = AlgorithmVersion.objects.filter(algorithm__team__in=teams, algorithm__name__in=called)
    found: dict[tuple[int, str], list[dict]] = {}
    for version in rows.select_related("algorithm"):
        key = (version.algorithm.team_id, str(version))
        found.setdefault(key, []).append(version.parts.model_dump(mode="json"))
    return found


def reference_of(composition: dict) -> str:
    return str(composition.get("preset") or "")
