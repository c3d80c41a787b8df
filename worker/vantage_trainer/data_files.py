"""Which dataset lies in which file of a run folder's data/. A + sets ours apart from evaluation sets' names."""

from vantage_trainer.spec import RunSpec

FIRST = "train"
IMITATED = "train+start"


def training_files(spec: RunSpec) -> dict[str, str]:
    """Name the files of the rows that reinforcement learning asks: train, train+2, ..., each with its dataset."""
    more = {f"{FIRST}+{number}": one.dataset for number, one in enumerate(spec.data.more, start=2)}
    return {FIRST: spec.data.train} | more


def imitated_file(spec: RunSpec) -> dict[str, str]:
    """Name the file of the warm start's own dataset, where it has one."""
    own = spec.warm_start.dataset if spec.warm_start else None
    return {IMITATED: own} if own else {}


def data_files(spec: RunSpec) -> dict[str, str]:
    """Name every file with its dataset."""
    sets = {one.name: one.dataset for one in spec.evaluation.sets}
    return training_files(spec) | imitated_file(spec) | sets


def file_of(problem_id: str) -> tuple[str, str]:
    """Return the training file that a problem comes from, and its row's id there."""
    number, mark, row = problem_id.partition(":")
    return (f"{FIRST}+{number}", row) if mark else (FIRST, problem_id)


def id_in(file: str, row: str) -> str:
    """Return the id of a row in the run: of further files it tells the file, so that no two are the same."""
    return row if file == FIRST else f"{file.removeprefix(FIRST + '+')}:{row}"
