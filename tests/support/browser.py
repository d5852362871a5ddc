"""A real Chromium, driven by Playwright, that may reach the console alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

#: As root in a container, and without what a browser does by itself.
_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-dev-shm-usage", "--disable-lcd-text", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]  # fmt: skip

#: Lets a page count no seconds until it loads itself again. It looks as if it did, other than when it is paused.
_STILL = "{ const every = window.setInterval; window.setInterval = (step, ms) => ms === 1000 ? 0 : every(step, ms); }"


class Site(Protocol):
    """A console that runs: its address, and the header of a session with a role."""

    @property
    def url(self) -> str: ...
    def session(self, role: str) -> dict[str, str]: ...


@contextmanager
def chromium(path: str) -> Iterator["Browser"]:
    """Start the browser at a path."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Window:
    """A page of the browser, and what went wrong in it."""

    page: "Page"
    console: Site
    #: Errors of scripts, reports of the content policy, and messages of the browser.
    complaints: list[str] = field(default_factory=list)
    #: Addresses outside the console that something asked for.
    foreign: list[str] = field(default_factory=list)
    #: Messages of dialogs that something opened.
    dialogs: list[str] = field(default_factory=list)

    def renew(self, width: int = 1280, height: int = 800) -> None:
        """Leave the page, and forget what it kept and what went wrong: the window is as good as a new one.

        A new one costs two seconds of CPU time, since it has a process and a cache to itself.
        """
        if self.page.url.startswith(self.console.url):
            self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self._go("about:blank")
        self.look(width, height)
        for noted in (self.complaints, self.foreign, self.dialogs):
            noted.clear()

    def look(self, width: int = 1280, height: int = 800, *, dark: bool = False, calm: bool = False) -> None:
        """Change the size and the colours of what is shown. `calm`: without colours of the page, and without motion."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(
            color_scheme="dark" if dark else "light",
            forced_colors="active" if calm else "none",
            reduced_motion="reduce" if calm else "no-preference",
        )

    def open(self, path: str) -> "Page":
        """Open a page of the console and wait until it is loaded."""
        self._go(self.console.url + path)
        return self.page

    def _go(self, address: str) -> None:
        """Go twice if the page before loads itself again at that moment, which ends the first visit."""
        from playwright.sync_api import Error

        try:
            self.page.goto(address, wait_until="load")
        except Error as error:
            if "ERR_ABORTED" not in error.message:
                raise
            self.page.goto(address, wait_until="load")


@contextmanager
def window(
    browser: "Browser",
    console: Site,
    *,
    role: str = "OPERATOR",
    width: int = 1280,
    height: int = 800,
    dark: bool = False,
    scripts: bool = True,
    still: bool = False,
    **options: Any,
) -> Iterator[Window]:
    """Open a window that is signed in. A request to another host is refused and noted. `still`: no page loads itself again."""
    context: BrowserContext = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
        **options,
    )
    context.set_default_timeout(60_000)
    name, value = console.session(role)["Cookie"].split("=", 1)
    context.add_cookies([{"name": name, "value": value, "url": console.url}])
    if still:
        context.add_init_script(_STILL)
    opened = Window(context.new_page(), console)
    host = urlsplit(console.url).netloc

    def requested(request: Any) -> None:
        if urlsplit(request.url).netloc != host:
            opened.foreign.append(request.url)

    def dismissed(dialog: Any) -> None:
        opened.dialogs.append(dialog.message)
        dialog.dismiss()

    context.on("request", requested)  # not a route, which would switch the browser's cache off
    opened.page.on("dialog", dismissed)
    opened.page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    try:
        yield opened
    finally:
        context.close()
