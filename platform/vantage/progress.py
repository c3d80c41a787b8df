"""What the terminal shows while something takes long; a closed terminal is no reason to fail."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str, end: str = "\n") -> None:
    try:
        print(text, end=end, flush=True)
    except OSError:  # the terminal went away; we may be stopping because of it
        return


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show a line while the work runs, and its time afterwards."""
    say(f"  {title} ...", end="")
    begun = time.monotonic()
    try:
        yield
    except BaseException:
        say("")
        raise
    say(f" {time.monotonic() - begun:.1f} s")
