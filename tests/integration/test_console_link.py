"""`assay console url`: a link that the console of the same settings accepts, once."""

import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from assay_access.console_links import RefusedLinkError, Signer
from assay_operations.console_link import link, way_in_from_file
from assay_operations.errors import OperationError

KEY = "a key of forty bytes that only tests know"


def data_with(directory: Path, *lines: str) -> Path:
    secrets = directory / "data/secrets"
    secrets.mkdir(parents=True)
    file = secrets / "console.toml"
    file.write_text("\n".join(["[console]", *lines]) + "\n")
    file.chmod(0o600)
    return directory / "data"


def test_the_console_with_the_same_key_accepts_a_link_once(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY + "\n")
    address = urlsplit(link(data_with(tmp_path, "listen_port = 9999", f'session_key_file = "{tmp_path / "key"}"')))
    assert f"{address.scheme}://{address.netloc}{address.path}" == "http://127.0.0.1:9999/login"
    (token,) = parse_qs(address.query)["token"]
    signer = Signer(KEY.encode(), time.time() - 1)
    signer.accept(token, time.time())
    with pytest.raises(RefusedLinkError, match="was used"):
        signer.accept(token, time.time())
    with pytest.raises(RefusedLinkError, match="not from this console"):
        Signer(b"another key of thirty-two bytes or more", 0).accept(token, time.time())
    with pytest.raises(RefusedLinkError, match="not from this console"):
        signer.person(token, time.time())


def test_a_link_leads_to_the_address_that_browsers_use(tmp_path: Path) -> None:
    data = data_with(tmp_path, f'session_key = "{KEY}"', 'public_url = "https://assay.example.com/"')
    assert link(data).startswith("https://assay.example.com/login?token=")


@pytest.mark.parametrize(
    ("lines", "way_in"),
    [
        ((f'session_key = "{KEY}"',), "http://127.0.0.1:9112/login?token="),
        (('auth = "proxy"', "listen_port = 9999"), "http://127.0.0.1:9999 (people sign in at the proxy"),
        (('auth = "proxy"', 'public_url = "https://assay.example.com/"'), "https://assay.example.com (people sign in"),
    ],
)
def test_assay_up_says_how_people_open_the_console_whether_by_a_link_or_at_a_proxy(
    tmp_path: Path, lines: tuple[str, ...], way_in: str
) -> None:
    assert way_in_from_file(data_with(tmp_path, *lines)).startswith(way_in)


@pytest.mark.parametrize(
    ("lines", "help_"),
    [
        ((), "console.session_key_file"),
        (('session_key = "short"',), "console.session_key_file"),
        ((f'session_key = "{KEY}"', 'auth = "proxy"'), "open http://127.0.0.1:9112"),
    ],
)
def test_without_a_key_in_common_the_error_names_the_setting(
    tmp_path: Path, lines: tuple[str, ...], help_: str
) -> None:
    with pytest.raises(OperationError, match=help_):
        link(data_with(tmp_path, *lines))
