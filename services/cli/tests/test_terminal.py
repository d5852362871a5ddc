"""How commands end that a person stops, or whose reader leaves."""

import pytest
import typer

from assay_cli.output.terminal import INTERRUPTED, ends_quietly


def test_who_stops_a_command_is_told_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, ends_quietly(stopped=lambda: "3 rows are done"):
        raise KeyboardInterrupt
    assert ended.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "stopped: 3 rows are done\n"
