"""Neutralize alert text, so that it commands no people, chats, mail programs or terminals. Pure.

Every service that monitors something may append to the stream `alerts`, and so may an evaluation in CI. Its text is
shown to people who act on it at night, in programs that interpret markup. The query and the command therefore come from
`alert_actions`, and free text loses its mentions, links and markup. Characters are replaced one for one, so lengths
stay within the contract.
"""

from assay_schema.alert_actions import acknowledge_command, query_of
from assay_schema.alerts import Alert
from assay_schema.printable import plain


def disarmed(alert: Alert) -> Alert:
    """Return the transition with generated query and command, and with plain text only."""
    return alert.model_copy(
        update={
            "summary": plain(alert.summary),
            "service": alert.service and plain(alert.service),
            "series": alert.series and plain(alert.series),
            "query": query_of(alert),
            "acknowledge": alert.acknowledge and acknowledge_command(alert.alert_id, alert.kind),
        }
    )
