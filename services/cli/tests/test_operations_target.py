"""How `assay operations list` shows the range of an operation."""

from assay_cli.commands.operations import target_text


def test_a_target_is_shown_by_name_with_times_that_people_read() -> None:
    assert target_text('{"upto_ms":1795602650355,"project":"shop"}') == "upto 2026-11-25T10:30:50Z, project shop"
    assert target_text('{"alert_id":"1","kind":"failures","metric":""}') == "alert_id 1, kind failures"
    assert target_text('{"ids":["1-0","2-0"]}') == "ids 1-0 2-0"
    assert target_text("{}") == ""
