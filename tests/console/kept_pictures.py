"""Pictures of /patterns that are kept next to this module, and what a browser shows now.

Browsers and fonts differ between machines. `kept.json` has the version of the browser that took the pictures and a picture of its fonts:
where both are the same, pixels are compared; everywhere, the places and widths of blocks, which do not depend on fonts.
"""

import base64
import hashlib
import json
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).parent / "kept"
WIDTHS, SCHEMES = (390, 768, 1280), ("light", "dark")
#: Share of pixels that may differ.
DIFFERENT_MAX = 0.001

_BLOCKS = (
    "[data-pattern], [data-pattern] :is(.panel, .notice, .verdict, .empty, .wide, .stats, .answer, .passage),"
    " [data-pattern] :is(figure, form, fieldset, pre)"
)
_PLACES = f"""() => [...document.querySelectorAll({_BLOCKS!r})].map(each => {{
    const box = each.getBoundingClientRect();
    const name = each.dataset.pattern ?? each.className.split(" ")[0];
    return [name, each.tagName.toLowerCase(), Math.round(box.x), Math.round(box.width)];
}})"""
_FONTS = """() => {
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    canvas.width = 900;
    ["14px system-ui, 'Noto Sans', Arial, sans-serif", "13px ui-monospace, Menlo, Consolas, monospace"].forEach((font, place) => {
        context.font = font;
        context.fillText("Quick 0123456789 ● ◆ ▲ ○ → … – the lazy dog, 79.2 %", 4, 40 + 50 * place);
    });
    return canvas.toDataURL();
}"""
#: Pixels of a PNG as text of base64: red, green, blue, alpha.
_PIXELS = """async png => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const bytes = new Uint8Array(context.getImageData(0, 0, image.width, image.height).data.buffer), parts = [];
    for (let at = 0; at < bytes.length; at += 32768) parts.push(String.fromCharCode(...bytes.subarray(at, at + 32768)));
    return [image.width, image.height, btoa(parts.join(""))];
}"""


@dataclass(frozen=True)
class Picture:
    """Pixels, three bytes each."""

    width: int
    height: int
    pixels: bytes

    @property
    def png(self) -> bytes:
        """The picture as a file, smaller than a browser's."""
        step = 3 * self.width
        rows = b"".join(b"\0" + self.pixels[at : at + step] for at in range(0, len(self.pixels), step))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
            for name, data in parts
        )

    def difference(self, other: "Picture") -> float:
        """Return the share of pixels that differ; 1 if the sizes do."""
        if (self.width, self.height) != (other.width, other.height):
            return 1.0
        one, two = (np.frombuffer(each.pixels, np.uint8).reshape(-1, 3) for each in (self, other))
        return float((one != two).any(axis=1).mean())


def fingerprint(browser: "Browser", page: "Page") -> dict[str, str]:
    """Return what decides how pixels of the same page look: the browser and its fonts."""
    return {"browser": browser.version, "fonts": hashlib.sha256(page.evaluate(_FONTS).encode()).hexdigest()}


def places(page: "Page") -> list[list[Any]]:
    """Return the blocks of a page: name, element, place from the left and width."""
    found: list[list[Any]] = page.evaluate(_PLACES)
    return found


def shown(page: "Page") -> Picture:
    """Return what is below the frame of a page, all of it. The bar's height depends on rows of the store: it is removed."""
    page.evaluate("document.querySelector('.bar')?.remove()")
    return picture_of(page, page.locator("main").screenshot(animations="disabled", caret="hide"))


def picture_of(page: "Page", png: bytes) -> Picture:
    """Decode a PNG, in the browser."""
    blank = page.context.new_page()  # the console's own pages may not load pictures of others
    try:
        width, height, text = blank.evaluate(_PIXELS, base64.b64encode(png).decode())
    finally:
        blank.close()
    all_four = base64.b64decode(text)
    pixels = bytearray(3 * width * height)
    for channel in range(3):
        pixels[channel::3] = all_four[channel::4]
    return Picture(width, height, bytes(pixels))


def file_of(width: int, scheme: str) -> Path:
    """Return the file of a kept picture."""
    return FOLDER / f"patterns-{width}-{scheme}.png"


def kept() -> dict[str, Any]:
    """Return what is known of the kept pictures: `browser`, `fonts`, and `places` by width."""
    found: dict[str, Any] = json.loads((FOLDER / "kept.json").read_text())
    return found
