"""`python -m harness.embedded.guard GROUP`: ends a process group when the process that started this one dies.

Standard input is a pipe from that process. It ends with a word if all is well, and without one if the process died,
however that happened: then everything in the group is asked to stop, and killed some seconds later.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

ALL_IS_WELL = b"well"
GRACE_S = 5.0


def main() -> None:
    group = int(sys.argv[1])
    if sys.stdin.buffer.read() == ALL_IS_WELL:
        return
    with suppress(ProcessLookupError):  # the group is gone
        os.killpg(group, signal.SIGTERM)
        time.sleep(GRACE_S)
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
