"""Run the embedded store: `python -m assay_store`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from assay_store.app import StartError, serve
from assay_store.options import StoreOptions


def options(arguments: list[str] | None = None) -> StoreOptions:
    """Parse the options of a command line."""
    parser = argparse.ArgumentParser(
        prog="assay_store", description="The embedded store: ClickHouse's HTTP protocol over chDB."
    )
    default = StoreOptions(Path(), Path())
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="data directory, made if missing")
    parser.add_argument("--users", type=Path, required=True, metavar="FILE", help="JSON file of users, mode 0600")
    parser.add_argument("--port", type=int, default=default.port, help="TCP port; 0 takes a free one (%(default)s)")
    parser.add_argument("--host", default=default.host, help="address to listen on (%(default)s)")
    parser.add_argument("--allow-remote", action="store_true", help="allow an address that other machines can reach")
    levels = ("DEBUG", "INFO", "WARNING", "ERROR")
    parser.add_argument("--log-level", choices=levels, default=default.log_level, help="what is logged (%(default)s)")
    for flag, kind, help_text in (
        ("--uid", int, "account to take when started as root on a kernel without Landlock"),
        ("--max-memory", int, "memory cap of the engine in bytes"),
        ("--keep-free-bytes", int, "room on the disk that inserts leave free"),
        ("--max-query-seconds", int, "longest query of an sre"),
        ("--readers", int, "threads that run queries"),
        ("--max-waiting", int, "requests that may wait for a thread"),
        ("--max-statement-bytes", int, "longest body of an owner's request that is not an INSERT"),
        ("--max-reader-statement-bytes", int, "the same of everybody else"),
        ("--max-head-bytes", int, "longest URL and headers of a request"),
        ("--head-timeout-seconds", float, "longest time for them to arrive"),
        ("--max-idle-connections", int, "connections without a request at a time"),
        ("--max-sessions-per-user", int, "sessions a user may have at a time"),
        ("--max-external-bytes", int, "longest body with external tables"),
        ("--insert-buffer-bytes", int, "bytes of an INSERT gathered before it writes"),
        ("--max-result-buffer-bytes", int, "longest result in a format that cannot be streamed"),
        ("--body-timeout-seconds", float, "longest pause between two parts of a body"),
        ("--session-seconds", int, "life of an idle session"),
        ("--max-session-seconds", int, "longest life of a session a client may ask for"),
        ("--stop-seconds", float, "time for running requests after SIGTERM"),
    ):
        name = "max_memory_bytes" if flag == "--max-memory" else flag[2:].replace("-", "_")
        parser.add_argument(
            flag, type=kind, default=getattr(default, name), dest=name, help=f"{help_text} (%(default)s)"
        )
    parsed = vars(parser.parse_args(arguments))
    parsed["data"] = parsed["data"].absolute()
    return StoreOptions(**parsed)


def main() -> int:
    """Run the store. Exit code 0 after a clean stop, 2 if it cannot start."""
    wanted = options()
    logging.basicConfig(
        level=wanted.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        serve(wanted)
    except StartError as failure:
        sys.stderr.write(f"assay-store: {failure}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
