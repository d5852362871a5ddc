"""The generator of positions with the check of statements and the roles switched off: the kernel alone stops what leads out.

A sample of the positions here; `make fuzz SUITE=wall` tries all of them.
"""

from pathlib import Path

import pytest

from assay_store import landlock
from assay_store.names import listed
from tests.security.every_position import BRIDGES, OF_TABLES, SLOW, Beyond, Unguarded, filled, positions, sampled
from tests.security.positions import BY_NAME, CALLS, TABLES

pytestmark = pytest.mark.xdist_group("security")

needs_network_rules = pytest.mark.skipif(
    not landlock.controls_network(landlock.version()), reason="the kernel's Landlock cannot refuse TCP"
)
FILE = [filled(template, "file", "'{secret}'") for template in CALLS + BY_NAME]
TABLE = [filled(template, "file", "'{secret}', LineAsString") for template in TABLES]
#: The bare engine takes the path of a file for the name of a table, so whatever takes a table opens files. The store has
#: no such database but `_engine`, which is nobody's.
PATH_AS_TABLE = [
    "SELECT * FROM `{secret}`",
    "SELECT * FROM timeSeriesData('{secret}')",
    "SELECT * FROM mergeTreeIndex(default, '{secret}')",
    "SELECT * FROM remote('127.0.0.1', default, '{secret}')",
]
URL = [filled(template, "url", "'http://127.0.0.1:{port}/x', LineAsString, 'x String'") for template in TABLES]


def test_without_the_wall_most_positions_lead_out(tmp_path: Path) -> None:
    """Else the test below would find nothing because it cannot."""
    with Beyond(tmp_path) as beyond, Unguarded(beyond, "none") as engine:
        for statements, kind, least in (
            (FILE, "files", 60),
            (TABLE, "files", 10),  # 3 s each, too little for some on a busy machine
            (PATH_AS_TABLE, "files", len(PATH_AS_TABLE)),
            (URL, "connections", 10),
        ):
            outside = {sql for found, sql in engine.attempt(statements).outside if found == kind}
            assert len(outside) >= least, [sql for sql in statements if sql not in outside]
        written = engine.attempt(["SELECT 'planted' INTO OUTFILE '{new}'"]).outside
        assert [kind for kind, _ in written] == ["files"]


@needs_network_rules
def test_behind_the_wall_no_position_of_any_function_leads_out(tmp_path: Path) -> None:
    names = listed()
    nobodys = sorted(names.nobody_table_functions - {*BRIDGES, *SLOW})
    with Beyond(tmp_path) as beyond, Unguarded(beyond, str(landlock.version())) as engine:
        tried = sampled(positions(engine), share=0.001, seed=11) + FILE + TABLE + PATH_AS_TABLE + URL
        tried += sampled(
            ([filled(template, name, arguments) for template in TABLES for arguments in OF_TABLES] for name in nobodys),
            share=0.02, seed=11,
        )  # fmt: skip
        outcome = engine.attempt(tried)
    assert outcome.tried > 2_000
    assert outcome.ran > outcome.tried / 20
    assert not outcome.outside, outcome.lines()
