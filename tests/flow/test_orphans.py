"""A container's first process inherits orphans: they are buried, and its own children keep their exit codes."""

import subprocess
import sys

ADOPT = """
import ctypes, os, subprocess, time
from vantage.processes import reap
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
child = subprocess.Popen(["sh", "-c", "exit 3"])
living = subprocess.Popen(["sleep", "60"])
subprocess.run(["sh", "-c", "(sleep 0.1; exit 5) & (sleep 0.1; exit 6) & exit"])
time.sleep(0.5)
reap([child, living])
left = [line.split()[2] for line in os.popen("ps -o pid=,ppid=,stat= --ppid %d" % os.getpid()) if "Z" in line]
print(child.returncode, living.poll(), left)
living.kill()
living.wait()
reap([child, living])
"""


def test_orphans_are_buried_and_children_keep_their_exit_codes() -> None:
    told = subprocess.run([sys.executable, "-P", "-c", ADOPT], capture_output=True, text=True, check=True)
    assert told.stdout == "3 None []\n"
