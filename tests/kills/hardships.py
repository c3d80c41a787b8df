"""Play the further cases: the same home with short leases, one run for most of them, one on a small disk."""

import os
from collections.abc import Callable

import hard_cases
import small_disk
from cell import Outcome, Target, told_end
from django.conf import settings
from hard_cases import LEASE_SECONDS, SWEEP_SECONDS, Case, claimed_once, undergo
from two_at_once import two_at_once
from vantage.nodes.models import Node
from whole_site import Site

Tell = Callable[[Outcome], None]


def endure(site: Site, tell: Tell) -> list[Outcome]:
    """Start the site again with short leases, twice at once, and walk through what may befall it."""
    left = site.stop()
    site.settings = {"VANTAGE_LEASE_SECONDS": str(LEASE_SECONDS), "VANTAGE_SWEEP_SECONDS": str(SWEEP_SECONDS)}
    settings.LEASE_SECONDS, settings.SWEEP_SECONDS = LEASE_SECONDS, SWEEP_SECONDS
    first = two_at_once(site)
    first.faults += [f"{len(left)} processes were left behind by the matrix."] if left else []
    tell(first)
    return [first, *_on(Target(site, "hardships"), hard_cases.CASES, tell), *_full_disk(site, tell)]


def _on(target: Target, cases: tuple[Case, ...], tell: Tell) -> list[Outcome]:
    found: list[Outcome] = []
    for case in cases:
        found.append(undergo(target, case))
        tell(found[-1])
    return [*found, told_end(target, cases[-1].name, tell)]


def _full_disk(site: Site, tell: Tell) -> list[Outcome]:
    if os.geteuid() != 0:
        skipped = Outcome("full disk", "", words="not tried: only root can mount a small disk")
        tell(skipped)
        return [skipped]
    with small_disk.on_small_disk(site) as target:
        first = claimed_once(target, Node.objects.values_list("name", flat=True).get())
        tell(first)
        return [first, *_on(target, small_disk.CASES, tell)]
