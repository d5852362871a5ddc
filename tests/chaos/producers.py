"""The processes of one scenario's load, and what they say they handed over."""

import itertools
import subprocess
import time
from pathlib import Path

from assay_schema.settings import RedisSettings
from assay_schema.topology import destination
from tests.chaos.load import Order, noted
from tests.chaos.rig import ROOT, Rig
from tests.chaos.scenario import Load
from tests.chaos.sessions import Part, read

#: How long producers may take to hand over what they have, in seconds.
PATIENCE_S = 90.0


class Producers:
    """All that send under one service name to one destination: the rig's Redis, or `elsewhere`, another one's address."""

    def __init__(self, rig: Rig, service: str, load: Load, events: int, seed: int, *, elsewhere: str = "") -> None:
        self.service = service
        self._rig, self._load, self._seed, self._elsewhere = rig, load, seed, elsewhere
        address = {"url": elsewhere or rig.redis_url(rig.to_capture), **rig.topology}
        #: Name of the spool's directory, by whether events go over HTTP.
        self._waiting = {False: destination(RedisSettings.model_validate(address))}
        if load.over_http:
            self._waiting[True] = f"http-127.0.0.1-{rig.gateway_port}-*"
        self.ledgers: list[str] = []
        self._numbers = itertools.count()
        through_sdk = round(events * load.sdk_share) if load.sdk else 0
        self._sdk_share = through_sdk // max(1, load.sdk)
        raw_share = (events - through_sdk) // max(1, load.raw)
        self.processes = [
            self._send("raw", raw_share, raw_share / load.seconds, http=load.over_http and number % 2 == 1)
            for number in range(load.raw)
        ]
        #: Those with the SDK. What one that is killed leaves in its spool is sent by the next that looks.
        self.sdk: list[subprocess.Popen[bytes]] = []
        for _ in range(load.sdk):
            self.start_sdk()

    def start_sdk(self) -> None:
        """One more with the SDK, with as many events as each had at first."""
        http = self._load.over_http and len(self.sdk) % 2 == 1
        self.sdk.append(self._send("sdk", self._sdk_share, self._sdk_share / self._load.seconds, http=http))
        self.processes.append(self.sdk[-1])

    def kill_sdk(self, *, spare: int = 0) -> None:
        """`kill -9` of those with the SDK, but for so many of the newest."""
        killed = self.sdk[: len(self.sdk) - spare]
        for process in killed:
            process.kill()
        for process in killed:
            process.wait(60)

    def _send(self, how: str, events: int, rate: float, *, http: bool = False) -> "subprocess.Popen[bytes]":
        number = next(self._numbers)
        ledger = str(self._rig.directory / f"ledger/{self.service}-{'elsewhere-' * bool(self._elsewhere)}{number}")
        self.ledgers.append(ledger)
        order = Order(
            how="post" if http and how == "raw" else how,
            redis=self._elsewhere or self._rig.redis_url(self._rig.to_capture if how == "sdk" else None),
            ledger=ledger,
            events=events,
            rate=rate,
            service=self.service,
            seed=self._seed + number,
            spool=str(self._rig.directory / "spool"),
            skew_s=self._load.skew_s if how == "raw" else 0.0,
            timeout_s=self._load.timeout_s,
            high_water=self._load.high_water,
            large=self._load.large,
            large_after=round(events * self._load.large_after) if how == "raw" and self._load.large_after >= 0 else -1,
            topology=dict(self._rig.topology),
            gateway=f"http://127.0.0.1:{self._rig.gateway_port}" if http else "",
            key=self._rig.gateway_key if http else "",
        )
        module = "tests.chaos.greenlets" if self._load.gevent and how == "sdk" else "tests.chaos.load"
        with (self._rig.directory / "log/producers.log").open("ab") as log:
            return subprocess.Popen(self._rig.program(module, order.text()), stdout=log, stderr=log, cwd=ROOT)

    def ended(self) -> list[str]:
        """Wait for their ends. What went wrong."""
        wrong = []
        for process in self.processes:
            try:
                if process.wait(PATIENCE_S) not in (0, -9):
                    wrong.append(f"a producer ended with {process.returncode}")
            except subprocess.TimeoutExpired:
                wrong.append("a producer could not hand over its events")
        return wrong

    def emptied(self) -> list[str]:
        """Wait for their ends, and until nothing waits in the spool. What went wrong."""
        wrong = self.ended()
        deadline = time.monotonic() + PATIENCE_S
        while left := self.left():
            if time.monotonic() > deadline:
                return [*wrong, "events are left in the spool"]
            self._send("sdk", 1, 1.0, http=left[0].parents[1].name.startswith("http-")).wait(PATIENCE_S)
        return wrong

    def left(self) -> list[Path]:
        """What waits in the spool for their destination."""
        spool = self._rig.directory / "spool"
        return [file for name in self._waiting.values() for file in spool.glob(f"*/{name}/*/*.jsonl")]

    def stop(self) -> None:
        """End them all."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(60)

    @property
    def flowing(self) -> bool:
        """Whether each has handed something over."""
        return all(noted(Path(f"{ledger}.sent")) for ledger in self.ledgers)

    def books(self) -> tuple[frozenset[str], frozenset[str], int]:
        """Sent, attempted, dropped."""
        sent, attempted, dropped = set[str](), set[str](), 0
        for ledger in self.ledgers:
            sent.update(noted(Path(f"{ledger}.sent")))
            attempted.update(noted(Path(f"{ledger}.attempted")))
            dropped += sum(map(int, noted(Path(f"{ledger}.dropped"))))
        return frozenset(sent), frozenset(attempted), dropped

    def parts(self) -> list[Part]:
        """Every part of a session that was tried."""
        return [part for ledger in self.ledgers for part in read(noted(Path(f"{ledger}.sessions")))]
