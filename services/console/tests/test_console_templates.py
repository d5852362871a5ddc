"""Templates are compiled before a person waits for one."""

import asyncio

from assay_console.app import _compile_templates
from assay_console.pages import PAGES
from assay_console.rendering import environment


def test_each_page_finds_its_template_compiled() -> None:
    environment.cache_clear()
    asyncio.run(_compile_templates(after_s=0))
    cache = environment().cache
    assert cache is not None
    compiled = {name for _, name in cache.keys()}  # noqa: SIM118 - no mapping
    assert {page.template_name for page in PAGES} <= compiled
