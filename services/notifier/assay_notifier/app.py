"""The notifier service: sends each transition in `alerts` to every receivers channel.

Delivery: one notice for each transition and channel, recorded before the entry is acknowledged; see `dispatch` for the
single exception. Redis: reads `alerts` as a group; stores `notices` and `episodes`; writes `dead` and `failures`. It
does not use the store.
"""

import asyncio
import logging
import time
from collections import Counter
from dataclasses import replace

from assay_notifier.alertmanager import Alertmanager
from assay_notifier.channel import NotDeliveredError
from assay_notifier.channel_factory import channels
from assay_notifier.delivery_log import DeliveryLog
from assay_notifier.dispatch import STAGE, Dispatcher
from assay_notifier.notice import SEVERITY, Notice, is_over
from assay_notifier.removed_alerts import RemovedAlerts
from assay_runtime import metrics
from assay_runtime.dead_letters import Expiry
from assay_runtime.entries import Bounds
from assay_runtime.finishing import dead_letter_finish
from assay_runtime.service import Service, main
from assay_schema.alerts import Alert
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.settings import Settings
from assay_schema.streams import ALERTS

log = logging.getLogger(__name__)

#: Maximum number of transitions in one step.
BATCH_ENTRIES = 100
#: Seconds between checks of the open episodes, and between removals of old records.
CHECK_EVERY_S, FORGET_EVERY_S = 5.0, 3_600.0


class Maintenance:
    """Maintenance: report open episodes as a metric, keep them alive in Alertmanager, remove old records."""

    def __init__(self, delivery_logs: list[DeliveryLog], alertmanager: Alertmanager | None, resend_s: float) -> None:
        self._delivery_logs = delivery_logs
        self._alertmanager = alertmanager
        self._resend_s = resend_s
        self._next_check = self._next_resend = self._next_forget = 0.0
        self._posting: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run the work that is due."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_EVERY_S
            notices = await self._open()
            counts = Counter(notice.severity for notice in notices)
            for severity in SEVERITY.values():
                metrics.OPEN_ALERTS.labels(severity.value).set(counts[severity])
        if self._alertmanager and now >= self._next_resend and (self._posting is None or self._posting.done()):
            self._next_resend = now + self._resend_s
            if notices := await self._open():  # runs in parallel with the other work, because Alertmanager may be slow
                self._posting = asyncio.create_task(self._keep_alive(self._alertmanager, notices))
        if now >= self._next_forget:
            self._next_forget = now + FORGET_EVERY_S
            for delivery_log in self._delivery_logs:
                await delivery_log.forget()

    async def _open(self) -> list[Notice]:
        return [
            notice
            for delivery_log in self._delivery_logs
            for notice in await delivery_log.latest()
            if not is_over(notice.alert)
        ]

    async def _keep_alive(self, alertmanager: Alertmanager, found: list[Notice]) -> None:
        try:
            await alertmanager.send([replace(notice, former=None) for notice in found])
        except NotDeliveredError as error:
            log.warning("open alerts could not be kept alive in Alertmanager: %s", error.why)

    def close(self) -> None:
        """Cancel running work; the next run posts again."""
        if self._posting:
            self._posting.cancel()


def build(settings: Settings) -> Service:
    """Build the service, ready to run. Raises `SettingsError`."""
    receivers = channels(settings.notifier)
    service = Service(STAGE, settings, settings.notifier.port)
    dispatcher = Dispatcher(
        receivers,
        give_up_s=settings.notifier.give_up_h * 3_600,
        forget_behind_s=4 * settings.delivery.visibility_timeout_s,
    )
    delivery_logs = []
    bounds = Bounds(BATCH_ENTRIES, 4 * ENTRY_MAX_BYTES, settings.notifier.group_wait_s)
    for shard in range(settings.redis.shards):
        delivery_logs.append(DeliveryLog(service.client, shard))
        service.consume(
            ALERTS,
            shard,
            process=dispatcher.process(shard, delivery_logs[-1]),
            finish=dead_letter_finish(service.client, ALERTS, STAGE, shard, settings.delivery.dead_bytes),
            bounds=bounds,
            document=Alert,
        )
        removed = RemovedAlerts(service.client, shard, STAGE)
        service.gate(removed.check)
        service.every_tick(removed.check)
    service.notes(dispatcher.notes)
    alertmanager = next((channel for channel in receivers if isinstance(channel, Alertmanager)), None)
    maintenance = Maintenance(delivery_logs, alertmanager, settings.notifier.resend_s)
    service.every_tick(maintenance.run)
    service.every_tick(Expiry(service.client, settings).run)
    service.at_exit(maintenance.close)
    return service


def run() -> None:
    """Entry point of `python -m assay_notifier`."""
    main(STAGE, build)
