"""A signed webhook: one POST per transition, with the JSON document of the alert as its body."""

from collections.abc import Sequence

from assay_notifier import signing
from assay_notifier.channel import Channel
from assay_notifier.http import Post
from assay_notifier.notice import Notice
from assay_runtime.clock import clock
from assay_schema.alert_actions import in_directory


class Webhook(Channel):
    """Sends `webhook-id` (the `transition_id`, the same at every attempt), `-timestamp` and `-signature`."""

    def __init__(self, name: str, post: Post, key: bytes, data: str = "") -> None:
        self.name = name
        self._post = post
        self._key = key
        self._data = data

    async def send(self, notices: Sequence[Notice]) -> None:
        """Post each notice as signed JSON."""
        for notice in notices:
            command = in_directory(notice.alert.acknowledge, self._data)
            content = notice.alert.model_copy(update={"acknowledge": command}).model_dump_json().encode()
            notice_id = str(notice.alert.transition_id)
            signed = signing.headers(self._key, notice_id, clock.now_ms() // 1_000, content)
            await self._post(content, {**signed, "idempotency-key": notice_id})
