"""Alerts as they are told: nothing in them commands people, chats, mail programs or terminals. Pure.

Every service that watches something may append to the stream `alerts`, and so may an evaluation in CI. What they say is shown to people
who act on it at night, in programs that obey mark-up. So the query and the command come from `alert_actions`, and what is free text loses
its mentions, links and mark-up. Characters are replaced one for one: lengths stay within the contract.
"""

from assay_schema.alert_actions import acknowledge_command, query_of
from assay_schema.alerts import Alert
from assay_schema.printable import plain


def disarmed(alert: Alert) -> Alert:
    """The same transition, with its own query and command, and text that is only text."""
    return alert.model_copy(
        update={
            "summary": plain(alert.summary),
            "service": alert.service and plain(alert.service),
            "series": alert.series and plain(alert.series),
            "query": query_of(alert),
            "acknowledge": alert.acknowledge and acknowledge_command(alert.alert_id, alert.kind),
        }
    )
