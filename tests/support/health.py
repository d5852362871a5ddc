"""Read the health endpoints of a service."""

import urllib.error
import urllib.request


def said(port: int, path: str) -> tuple[int, str]:
    """Return the status and the text of an answer; (0, "") if there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return int(answer.status), str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""
