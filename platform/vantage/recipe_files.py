"""How `vantage recipe smollm2` is told where its problem sets lie."""

import argparse
from pathlib import Path

from vantage_trainer import recipes


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """One option per problem set, and one for the folder in which all lie under their usual names."""
    parser.add_argument("--folder", type=Path, help="folder that holds all four files under the names below")
    for file in recipes.SMOLLM2_FILES:
        parser.add_argument(f"--{file.option}", type=Path, help=file.what, metavar="FILE")


def files_of(arguments: argparse.Namespace) -> dict[str, Path]:
    """Return the path of each problem set; ValueError names the options that are missing."""
    given = {file: getattr(arguments, file.option.replace("-", "_")) for file in recipes.SMOLLM2_FILES}
    found = {file: path or (arguments.folder and arguments.folder / file.usual) for file, path in given.items()}
    if missing := [f"--{file.option}" for file, path in found.items() if path is None]:
        raise ValueError(f"Name the problem sets, all with --folder or each with its option: {', '.join(missing)}.")
    return {file.name: path for file, path in found.items()}
