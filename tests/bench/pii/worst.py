"""`python -m tests.bench.pii.worst TOOL SIZE`: CPU seconds of each hostile text, one line each as it is done, on one core."""

import json
import sys
import time

from .hostile import UNITS, text
from .run import one_core
from .tools import TOOLS

if __name__ == "__main__":
    one_core()
    _, scrub = TOOLS[sys.argv[1]]()
    for unit in UNITS:
        hostile = text(unit, int(sys.argv[2]))
        started = time.thread_time()
        scrub(hostile)
        print(json.dumps([unit, time.thread_time() - started]), flush=True)
