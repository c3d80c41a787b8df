"""Where the templates and static files lie: in the checkout, or inside an installed wheel."""

from pathlib import Path


def frontend_folder() -> Path:
    packaged = Path(__file__).parent / "_frontend"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "frontend"
