"""Resident memory of the assembler while 10,000 traces are open: a part of the suite `gateway`.

Each trace has a retrieval and a model call with texts of about 2 KB, and no local root, so that it stays open.
"""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import psutil

from assay_schema.streams import FIELD, SPANS, open_traces_key
from tests.bench.result import result
from tests.support.assembler import CHAT, RETRIEVAL, Assembler, entry
from tests.support.gateway import redis_with_identities
from tests.support.spans import span
from tests.support.wait import until

TRACES, RSS_MIB = 10_000, 200
TEXT = "Rows are kept for ninety days unless their project has a different retention. " * 25


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Return the row, in MiB."""
    traces = TRACES // 10 if quick else TRACES
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = redis_with_identities(directory)
        stack.callback(server.stop)
        waiting = {"ASSAY_ASSEMBLER_IDLE_S": "3600", "ASSAY_ASSEMBLER_LONGEST_S": "3600"}
        assembler = Assembler(directory, server, **waiting).start()
        stack.callback(assembler.kill)
        client = stack.enter_context(contextlib.closing(server.client()))
        for first in range(0, traces, 500):
            pipeline = client.pipeline(transaction=False)
            for number in range(first, first + 500):
                pipeline.xadd(SPANS.key(), {FIELD: _trace(f"{number + 1:032x}")})
            pipeline.execute()
        until(lambda: not client.xlen(SPANS.key()), "the spans are not read")
        assert client.zcard(open_traces_key()) == traces
        assert assembler.process
        rss = psutil.Process(assembler.process.pid).memory_info().rss / 2**20
    return [result(f"assembler's memory with {traces:,} open traces / its limit", rss, RSS_MIB, "MiB", "<= 1", 1)]


def _trace(trace: str) -> bytes:
    call = CHAT | {"gen_ai.output.messages": f'[{{"role":"assistant","parts":[{{"type":"text","content":"{TEXT}"}}]}}]'}
    return entry(
        span(RETRIEVAL, number=1, parent=9, local_root=False, trace=trace),
        span(call, number=2, parent=9, local_root=False, trace=trace),
        trace=trace,
    )
