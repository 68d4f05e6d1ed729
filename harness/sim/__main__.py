"""`python -m harness.sim OPTIONS`: a simulated engine, or a router before several, until it is told to stop.

OPTIONS are JSON, as `harness.sim.process_options.ProcessOptions.arguments` writes it; people type `kvswarm serve sim`.
"""

from __future__ import annotations

import sys

from harness.errors import KvswarmError
from harness.sim.options import SimOptions


def main() -> int:
    options = SimOptions.from_json(sys.argv[1])
    try:
        options.check()
        if options.replicas > 1:
            from harness.sim.fleet import run
        else:
            from harness.sim.server import run
        run(options)
    except KvswarmError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
