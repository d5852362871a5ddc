"""Which failure is whose fault: a backend that takes no span at all is an outage, however it says so."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import orjson
import pytest

from assay_otlp_exporter.app import event_item
from assay_otlp_exporter.backend import PROBE, Backend
from assay_otlp_exporter.endpoint import endpoint_of
from assay_otlp_exporter.export import Export
from assay_otlp_exporter.sender import Sender
from assay_runtime.entries import Entry, Outcome, SinkUnavailableError
from assay_schema.ids import new_event_id
from assay_schema.published import examples
from assay_schema.settings import OtlpExporterSettings
from tests.support.otlp_backend import OtlpBackend, Received

[DOCUMENT] = [orjson.loads(each.document_bytes) for each in examples("events") if each.name == "tool-call-full"]
Answer = int | tuple[int, dict[str, str]]


def entries(count: int) -> list[Entry]:
    return [
        Entry(f"{n + 1}-0", orjson.dumps(DOCUMENT | {"event_id": new_event_id(), "origin": "sdk"}))
        for n in range(count)
    ]


def event_id(entry: Entry) -> str:
    return str(orjson.loads(entry.data)["event_id"])


@pytest.fixture
async def receiver() -> AsyncIterator[OtlpBackend]:
    running = OtlpBackend()
    yield running
    running.close()


@pytest.fixture
async def backend(receiver: OtlpBackend) -> AsyncIterator[Backend]:
    settings = OtlpExporterSettings.model_validate({"endpoint": receiver.url, "timeout_s": 1})
    sender = Sender(endpoint_of(settings, {}), settings.timeout_s)
    yield Backend(sender)
    await sender._client.aclose()


def exporting(backend: Backend, suspect_after_s: float = 0) -> Callable[[Sequence[Entry]], Any]:
    return Export(backend, event_item(OtlpExporterSettings()), suspect_after_s).process()


def failed(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.entry_id for outcome in outcomes if outcome.failure]


def real(spans: list[Received]) -> bool:
    return all(each.span.name != PROBE for each in spans)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 451, 500, 502, 503, 504])
async def test_a_status_for_every_span_loses_none(receiver: OtlpBackend, backend: Backend, status: int) -> None:
    export, batch = exporting(backend), entries(5)
    receiver.answer = lambda _: 200
    assert failed(await export(entries(1))) == []  # it worked before
    receiver.answer = lambda _: status
    for _ in range(3):
        with pytest.raises(SinkUnavailableError):
            await export(batch)
    assert str(status) in backend.notes()[0]
    receiver.answer = lambda _: 200
    assert failed(await export(batch)) == []
    assert {event_id(each): 1 for each in batch}.items() <= receiver.times_taken().items()
    assert backend.notes() == []


@pytest.mark.parametrize("status", [400, 500])
async def test_a_backend_that_takes_only_empty_requests_is_an_outage(
    receiver: OtlpBackend, backend: Backend, status: int
) -> None:
    receiver.answer = lambda spans: status if spans else 200
    with pytest.raises(SinkUnavailableError):
        await exporting(backend)(entries(5))


@pytest.mark.parametrize("status", [400, 413, 422, 500, 404])
async def test_a_span_that_the_backend_refuses_while_it_takes_others_is_a_failure(
    receiver: OtlpBackend, backend: Backend, status: int
) -> None:
    batch = entries(20)
    wrong = event_id(batch[13])
    receiver.answer = lambda spans: status if real(spans) and wrong in {each.event_id for each in spans} else 200
    assert failed(await exporting(backend)(batch)) == ["14-0"]
    assert len(receiver.times_taken()) == 19
    assert "refused 1 spans" in backend.notes()[0]


async def test_a_refused_span_that_is_alone_is_found_out_by_a_span_of_the_exporter(
    receiver: OtlpBackend, backend: Backend
) -> None:
    receiver.answer = lambda spans: 400 if real(spans) else 200
    assert failed(await exporting(backend)(entries(1))) == ["1-0"]


async def test_an_internal_error_blames_no_span_at_first(receiver: OtlpBackend, backend: Backend) -> None:
    receiver.answer = lambda spans: 500 if real(spans) else 200
    with pytest.raises(SinkUnavailableError):
        await exporting(backend, suspect_after_s=60)(entries(1))


async def test_a_span_that_the_backend_never_answers_keeps_no_other_back(
    receiver: OtlpBackend, backend: Backend
) -> None:
    batch = entries(3)
    wrong = event_id(batch[1])

    def answer(spans: list[Received]) -> int:
        if real(spans) and wrong in {each.event_id for each in spans}:
            time.sleep(3)  # longer than the time-out
        return 200

    receiver.answer = answer
    assert failed(await exporting(backend)(batch)) == ["2-0"]


async def test_spans_that_were_taken_before_an_outage_are_not_sent_again(
    receiver: OtlpBackend, backend: Backend
) -> None:
    batch = entries(600)  # two requests
    first = iter([200])
    receiver.answer = lambda _: next(first, 503)
    export = exporting(backend)
    with pytest.raises(SinkUnavailableError):
        await export(batch)
    receiver.answer = lambda _: 200
    assert len(await export(batch)) == 600
    assert set(receiver.times_taken().values()) == {1}


async def test_at_a_stop_what_was_taken_is_finished_and_the_rest_stays(receiver: OtlpBackend, backend: Backend) -> None:
    batch = entries(600)

    def answer(_: list[Received]) -> int:
        backend.stopping.set()
        return 200

    receiver.answer = answer
    outcomes = await exporting(backend)(batch)
    assert [outcome.entry_id for outcome in outcomes] == [entry.id for entry in batch[:512]]


async def test_the_pause_that_the_backend_asks_for_is_waited_for(receiver: OtlpBackend, backend: Backend) -> None:
    times: list[float] = []

    def answer(_: list[Received]) -> Answer:
        times.append(time.monotonic())
        return (429, {"retry-after": "1"}) if len(times) == 1 else 200

    receiver.answer = answer
    export, batch = exporting(backend), entries(1)
    with pytest.raises(SinkUnavailableError):
        await export(batch)
    await export(batch)
    assert times[1] - times[0] >= 1


async def test_a_200_with_a_broken_body_is_a_success(receiver: OtlpBackend, backend: Backend) -> None:
    receiver.answer = lambda _: (200, {"content-encoding": "gzip", "content-length": "0"})
    assert failed(await exporting(backend)(entries(1))) == []


async def test_a_date_without_a_zone_as_retry_after_is_understood(receiver: OtlpBackend, backend: Backend) -> None:
    receiver.answer = lambda _: (503, {"retry-after": "Wed, 21 Oct 2009 07:28:00 -0000"})
    with pytest.raises(SinkUnavailableError):
        await exporting(backend)(entries(1))
