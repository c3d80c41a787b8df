"""The kill matrix: `python tests/kills/matrix.py` kills each process of a real site in each phase of a real run.

It starts one `vantage up` in a temporary home, prints a table, and exits with 1 when a cell failed.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from moments import PHASES
from outcome_table import FOOT, HEAD, grid, row, write_json
from trainer_watch import Watcher
from victims import VICTIMS
from whole_site import Site

if TYPE_CHECKING:
    from cell import Outcome

Cell = tuple[str, str]
SHARING = (  # victims that take turns on one run
    ("trainer",),
    ("generator",),
    ("supervisor", "node agent", "Celery worker"),
    ("web", "vantage up"),
    ("Valkey", "Postgres"),
)


def main() -> int:
    arguments = _arguments()
    site = Site()
    watcher = Watcher(site.home / "runs")
    began = time.monotonic()
    outcomes: list[Outcome] = []
    try:
        site.start()
        site.enter()
        if os.geteuid() == 0:
            os.setpriority(os.PRIO_PROCESS, 0, -10)  # what polls each millisecond must not wait for its turn
        watcher.start()
        print(HEAD, flush=True)
        _play(site, arguments, outcomes)
    finally:
        watcher.stop()
        left = site.stop()
    overlaps = [*watcher.overlaps, *([f"{len(left)} processes were left behind at the end."] if left else [])]
    print(f"\n{grid(outcomes, list(PHASES))}")
    _tell_end(watcher, overlaps, time.monotonic() - began)
    if arguments.json:
        write_json(arguments.json, outcomes, overlaps)
    failed = [one for one in outcomes if one.faults]
    if failed:
        print(f"{len(failed)} cells failed; what they left lies in {site.parent}.")
    else:
        site.remove()
    return 1 if failed or overlaps else 0


def _play(site: Site, arguments: argparse.Namespace, outcomes: "list[Outcome]") -> None:
    from cell import walk  # models exist only now
    from hardships import endure

    def tell(outcome: "Outcome") -> None:
        print(row(outcome), flush=True)

    for name, cells in _groups(arguments):
        outcomes += walk(site, name, cells, tell)
    if arguments.hardships:
        outcomes += endure(site, tell)


def _tell_end(watcher: Watcher, overlaps: list[str], seconds: float) -> None:
    print(FOOT)
    print(
        f"The process table and the locks were looked at {watcher.num_looks} times: {watcher.num_trainers} trainers, "
        f"never more than {watcher.most} of a run at once. All this took {seconds / 60:.1f} min."
    )
    for sentence in overlaps:
        print(f"FAILED: {sentence}")


def _groups(arguments: argparse.Namespace) -> list[tuple[str, list[Cell]]]:
    """Which cells share a run: those of one of SHARING, phase by phase, or with --cells all."""
    if arguments.cells is not None:
        return [("one run", arguments.cells)] if arguments.cells else []
    chosen = [[victim for victim in group if victim in arguments.victims] for group in SHARING]
    return [
        (" + ".join(group), [(victim, phase) for phase in PHASES if phase in arguments.phases for victim in group])
        for group in chosen
        if group
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Kill each process in each phase of a run, and see what comes of it.")
    parser.add_argument("--victims", type=_names(VICTIMS), default=list(VICTIMS), help="separated by commas")
    parser.add_argument("--phases", type=_names(PHASES), default=list(PHASES), help="separated by commas")
    parser.add_argument("--cells", type=_cells, help="victim:phase,... on one run, instead of the matrix")
    parser.add_argument(
        "--hardships", action=argparse.BooleanOptionalAction, default=True, help="stalls, servers away, a full disk"
    )
    parser.add_argument("--json", type=Path, help="write the outcomes there too")
    return parser.parse_args()


def _names(known: dict[str, object]) -> "type[list[str]]":
    def read(text: str) -> list[str]:
        return [_known(name, known) for name in text.split(",")]

    return read  # type: ignore[return-value]


def _cells(text: str) -> list[Cell]:
    pairs = [part.partition(":") for part in text.split(",") if part]
    return [(_known(victim, VICTIMS), _known(phase, PHASES)) for victim, _, phase in pairs]


def _known(name: str, known: dict[str, object]) -> str:
    if name.strip() not in known:
        raise argparse.ArgumentTypeError(f"there is no {name}; choose of {', '.join(known)}")
    return name.strip()


if __name__ == "__main__":
    sys.exit(main())
