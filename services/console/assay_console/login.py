"""Find out who asks: a session, a trusted proxy, or a key of the API."""

import hmac
import ipaddress
import time
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from assay_access.console_links import KEY_MIN_BYTES, LINK_S, NOTICE_S, RefusedLinkError, Signer
from assay_console.people import Person, Role
from assay_operations.api_keys.reading import live_read_key
from assay_operations.errors import OperationError
from assay_runtime.config import secret
from assay_runtime.connection import Client as Redis
from assay_schema.settings import ConsoleSettings, SettingsError

#: Longest name of a person, in characters.
_NAME_MAX = 200
#: Longest address of a page that is remembered until someone signs in, in characters.
_WANTED_MAX = 1_000


@dataclass(frozen=True)
class Proxy:
    """Headers and addresses of the reverse proxy that names people."""

    secret: str
    addresses: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    user_header: str
    groups_header: str
    labellers: frozenset[str]
    operators: frozenset[str]

    def person(self, request: HTTPConnection) -> Person | None:
        """Return the person that the proxy names; None if there is none, or it is not the proxy."""
        try:
            address = ipaddress.ip_address(request.client.host if request.client else "")
        except ValueError:
            return None
        given = request.headers.get("x-assay-proxy-secret", "")
        # One header that is sent twice would be two opinions on who asks.
        names = _texts(request, self.user_header)
        if (
            not any(address in network for network in self.addresses)
            or not hmac.compare_digest(given.encode(), self.secret.encode())
            or len(names) != 1
            or not 0 < len(names[0]) <= _NAME_MAX
        ):
            return None
        groups = words(",".join(_texts(request, self.groups_header)))
        role = Role.OPERATOR if groups & self.operators else Role.LABELLER if groups & self.labellers else Role.VIEWER
        return Person(names[0], role)


def _texts(request: HTTPConnection, header: str) -> list[str]:
    """Return the values of a header. Proxies send names in UTF-8, which the server takes for Latin-1."""
    found = []
    for value in request.headers.getlist(header):
        try:
            found.append(value.encode("latin-1").decode())
        except UnicodeDecodeError:
            found.append(value)
    return found


def words(text: str) -> frozenset[str]:
    """Return the words of a list with commas. Pure."""
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def proxy_of(settings: ConsoleSettings) -> Proxy | None:
    """Return the proxy of the settings; None with `auth = "local"`. Raises `SettingsError`."""
    if settings.auth == "local":
        _expect_private(settings)
        return None
    shared = secret(settings.proxy_secret, settings.proxy_secret_file, "console.proxy_secret_file")
    if len(shared.encode()) < KEY_MIN_BYTES:
        raise SettingsError(f"console.proxy_secret: set {KEY_MIN_BYTES} bytes or more, the same as in the proxy")
    try:
        addresses = tuple(ipaddress.ip_network(each) for each in sorted(words(settings.trusted_proxies)))
    except ValueError as error:
        raise SettingsError(f"console.trusted_proxies: {error}") from None
    return Proxy(
        shared,
        addresses,
        settings.user_header,
        settings.groups_header,
        words(settings.labeller_groups),
        words(settings.operator_groups),
    )


def _expect_private(settings: ConsoleSettings) -> None:
    """Raise `SettingsError` if links and sessions would cross a network in clear."""
    if settings.public_url is not None:
        address = urlsplit(settings.public_url)
        if not address.hostname or address.path.strip("/") or address.scheme not in ("http", "https"):
            raise SettingsError("console.public_url must look like https://assay.example.com, without a path")
        if address.scheme == "https" or _is_loopback(address.hostname):
            return
        raise SettingsError("console.public_url: use https://; only on loopback may links and sessions travel in clear")
    if not _is_loopback(settings.listen_host):
        raise SettingsError(
            f"console.listen_host: {settings.listen_host} is not loopback; put a proxy that knows people in front and set "
            'console.auth = "proxy", or set console.public_url'
        )


def hosts_of(settings: ConsoleSettings) -> frozenset[str]:
    """Return the host names that browsers may use."""
    public = urlsplit(settings.public_url or "").hostname
    named = f"[{public}]" if public and ":" in public else public  # as a Host header has it
    return words(settings.hosts.lower()) | ({named} if named else set())


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Login:
    """Finds the person of a request, and turns links into sessions."""

    def __init__(self, settings: ConsoleSettings, signer: Signer, proxy: Proxy | None, redis: Redis) -> None:
        self._settings = settings
        self._signer = signer
        self._proxy = proxy
        self._redis = redis
        # Cookies do not know ports: two consoles on one host would end each other's sessions.
        self._cookie = f"assay_{settings.listen_port}"
        self._notice_cookie = f"{self._cookie}_notice"
        self._wanted_cookie = f"{self._cookie}_wanted"

    @property
    def how(self) -> str:
        """Advice to someone who is not signed in."""
        if self._proxy is None:
            return "open the link that this command prints: assay console url"
        where = self._settings.public_url or "the address of the proxy"
        return (
            f"people sign in at the proxy: open {where}. If you run the proxy, it must send `{self._proxy.user_header}`, and "
            "`console.proxy_secret` as `X-Assay-Proxy-Secret`, from an address in `console.trusted_proxies`"
        )

    def remember(self, wanted: str, answer: Response) -> Response:
        """Let the next link that signs in lead to a page. Return the answer."""
        wanted = _within(wanted)
        if self._proxy is None and 1 < len(wanted) <= _WANTED_MAX:
            self._set(answer, self._wanted_cookie, quote(wanted, safe="/"), LINK_S)
        return answer

    async def person(self, request: HTTPConnection) -> Person | None:
        """Return who asks; None if that is unknown. Raises `OperationError` if a key cannot be checked."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            record = await live_read_key(self._redis, key.strip())
            return Person(f"key {record.id}", Role.VIEWER, record.project) if record else None
        if self._proxy is not None:
            return self._proxy.person(request)
        return self._of_session(request)

    def _of_session(self, request: HTTPConnection) -> Person | None:
        cookie = request.cookies.get(self._cookie)
        if cookie is None:
            return None
        try:
            name, role = self._signer.person(cookie, time.time())
            return Person(name, Role[role])
        except (RefusedLinkError, ValueError, KeyError, TypeError):
            return None

    def enter(self, request: Request) -> Response:
        """Turn the token of a link into a session. Raises `OperationError`.

        A link that was used leads who has a session to the page.
        """
        wanted = unquote(request.cookies.get(self._wanted_cookie, "/"))
        following = RedirectResponse(_within(request.query_params.get("next", wanted)), 303)
        if self._proxy is not None:
            raise OperationError("not_found", "people are named by the proxy in front of this console")
        try:
            self._signer.accept(request.query_params.get("token", ""), time.time())
        except (RefusedLinkError, ValueError, KeyError, TypeError) as error:
            if self._of_session(request):
                return following
            why = str(error) if isinstance(error, RefusedLinkError) else "this link is not from this console"
            raise OperationError("refused", why, "make a new one: assay console url") from None
        person = Person("local", Role.OPERATOR)
        hours = self._settings.session_hours
        session = self._signer.session(person.name, person.role.name, time.time(), hours)
        self._set(following, self._cookie, session, round(hours * 3600))
        if self._wanted_cookie in request.cookies:
            following.delete_cookie(self._wanted_cookie, httponly=True, samesite="lax")
        return following

    def _set(self, answer: Response, name: str, value: str, seconds: int) -> None:
        is_secure = (self._settings.public_url or "").startswith("https://")
        answer.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=is_secure)

    def note(self, answer: Response, person: Person, path: str, text: str) -> None:
        """Let the page at `path` say a text to a person, once: a link alone cannot make it."""
        notice = self._signer.notice(text, person.name, urlsplit(path).path, time.time())
        self._set(answer, self._notice_cookie, notice, NOTICE_S)

    def noted(self, request: Request, person: Person) -> str:
        """Return what the page of a request says to a person; empty for nothing."""
        cookie = request.cookies.get(self._notice_cookie, "")
        try:
            return self._signer.noticed(cookie, person.name, request.url.path, time.time())
        except (RefusedLinkError, ValueError, KeyError, TypeError):
            return ""

    def forget_note(self, answer: Response) -> None:
        """Remove what a page has said."""
        answer.delete_cookie(self._notice_cookie, httponly=True, samesite="lax")

    def leave(self) -> Response:
        """End the session of this browser."""
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(self._cookie, httponly=True, samesite="lax")
        return answer


def _within(path: str) -> str:
    """Return a path of this console; anything else becomes the first page. Pure."""
    ok = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if ok else "/"
