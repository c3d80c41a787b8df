"""Two `vantage up` on one home at the same instant: one works, the other points to it."""

import time

from cell import Outcome
from whole_site import START_SECONDS, Site


def two_at_once(site: Site) -> Outcome:
    outcome = Outcome("(two vantage up)", "at once")
    begun = [site.command("up", "--port", str(site.port)) for _ in range(2)]
    began, deadline = time.time(), time.monotonic() + START_SECONDS
    while all(popen.poll() is None for popen in begun) and time.monotonic() < deadline:
        time.sleep(0.05)
    codes = [popen.poll() for popen in begun]
    site.popen = begun[0] if codes[0] is None else begun[1]
    outcome.back = time.time() - began
    if sorted(map(str, codes)) != ["0", "None"]:
        outcome.faults.append(f"They ended with {codes}: {site.last_words()}")
    elif f"already runs at {site.address}" not in site.log.read_text() or not site.answers():
        outcome.faults.append(f"The second one did not point to the first: {site.last_words()}")
    outcome.words = "one works, the other prints its address and ends"
    return outcome
