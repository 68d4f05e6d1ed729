"""`python -m harness.embedded`: the embedded server as a process, until its standard input ends."""

from __future__ import annotations

import os
import sys

from harness.embedded.llama_cpp import start
from harness.embedded.options import parse
from harness.embedded.server import READY
from harness.errors import KvswarmError


def main() -> int:
    os.umask(0o077)  # what it writes are saved slots, and those are conversations
    try:
        server = start(parse())
    except KvswarmError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    # In one piece: llama.cpp's own log goes to the same place, and would come between the address and the line's end.
    sys.stdout.write(f"{READY}{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()
    # llama.cpp's own shutdown waits for ever while a request is being served, and there is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
