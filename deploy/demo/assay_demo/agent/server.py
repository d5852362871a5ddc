"""An MCP server whose tools are the demo's search, captured by one line."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.mcpserver import MCPServer

from assay_capture import Capture
from assay_capture.mcp import capture_tools
from assay_demo.corpus import Document
from assay_demo.search import Search
from assay_demo.service import gist
from assay_scrubber.refusal import RefusalPolicy, check

#: Columns of the table of maintainers, and the categories of personal data that they contain.
COLUMNS = {"team": (), "email": ("contact",), "passport": ("government_id",)}
#: It blocks credentials, payment cards and government ids.
POLICY = RefusalPolicy()
#: A page longer than this many characters is cut.
PAGE_MAX = 1_000


class ToolServer:
    """The server. `endless` receives the name of a tool that has begun and does not end by itself."""

    def __init__(self, search: Search, capture: Capture) -> None:
        self._search = search
        self._pages: dict[str, Document] = {document.id: document for document in search.corpus.documents}
        self.endless = asyncio.Queue[str]()
        self.mcp = MCPServer("stdlib-search", log_level="CRITICAL")  # errors of tools are captured, so none is printed
        for tool in (self.search, self.read, self.find_maintainer, self.rebuild_index):
            self.mcp.add_tool(tool)
        capture_tools(self.mcp, capture, describe=describe)

    async def search(self, query: str, limit: int = 5, relax: bool = False) -> dict[str, Any]:
        """Find pages of the standard library. `relax` drops words from the end until a page is found."""
        hits = self._search.search(query, limit).hits
        words = query.split()
        relaxed = relax and not hits
        while relaxed and not hits and len(words) > 1:
            words.pop()
            hits = self._search.search(" ".join(words), limit).hits
        status = "empty" if not hits else "degraded" if relaxed else "success"
        pages = [{"page": hit.document.id, "says": gist(hit.document)} for hit in hits]
        return {"status": status, "pages": pages}

    async def read(self, pages: list[str]) -> dict[str, Any]:
        """Return the text of pages. Raises `LookupError` if none exists."""
        found = [self._pages[page] for page in pages if page in self._pages]
        if not found:
            raise LookupError(f"no page {pages[0]}")
        status = "success" if len(found) == len(pages) else "partial"
        return {"status": status, "pages": [{"page": each.id, "text": each.text[:PAGE_MAX]} for each in found]}

    async def find_maintainer(self, module: str, columns: list[str]) -> dict[str, Any]:
        """Return columns of the table of maintainers, unless the policy blocks what is in them."""
        refusal = check(_categories(columns), POLICY)
        if refusal:
            return refusal.envelope() | {"columns": columns}
        return {"status": "success", "columns": columns, "rows": [{"team": f"{module}-team"}]}

    async def rebuild_index(self, module: str) -> dict[str, Any]:
        """Rebuild the index of a module, which takes longer than anyone waits."""
        await self.endless.put("rebuild_index")
        await asyncio.Event().wait()
        return {"status": "success", "module": module}


def describe(tool: str, result: Any) -> dict[str, Any]:
    """Return the summary of a result: how much it has, or which categories of data were refused."""
    if not isinstance(result, dict):
        return {}
    if result["status"] == "refused" and (refusal := check(_categories(result["columns"]), POLICY)):
        return dict(refusal.summary())
    return {"rows" if tool == "find_maintainer" else "pages": len(result.get("rows") or result.get("pages") or ())}


def _categories(columns: list[str]) -> set[str]:
    return {category for column in columns for category in COLUMNS.get(column, ())}
