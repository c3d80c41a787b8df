"""What makes one press of the launch button one run, and tells a form from a stray request."""

from uuid import UUID, uuid5

from django.http import QueryDict

INCOMPLETE = "The form did not arrive whole, so nothing was launched: load this page again and launch from there."


def launch_token(posted: QueryDict) -> UUID | None:
    """Return the form's token together with all it holds: a change makes it another launch, a repeat does not."""
    try:
        token = UUID(posted.get("token", ""))
    except ValueError:
        return None
    held = sorted((name, values) for name, values in posted.lists() if name != "csrfmiddlewaretoken")
    return uuid5(token, repr(held))


def is_whole(posted: QueryDict, sections: list[str]) -> bool:
    """Whether the form's token and a field of each of its sections were posted."""
    present = {name.partition(".")[0].partition(":")[0] for name in posted}
    return launch_token(posted) is not None and {"seed", "run_name", *sections} <= present
