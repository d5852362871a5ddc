"""Settings of the documentation site, which `make site` builds with Sphinx from the Markdown of this repository."""

from importlib.resources import files

project = "Assay"
html_title = "Assay"
html_theme = "furo"
extensions = ["myst_parser", "sphinx_copybutton", "sphinx_external_toc"]

# The source directory is the repository itself, so that links between pages are the same here and where the repository is read.
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/*.md", "deploy/**/README.md"]
exclude_patterns = ["deploy/docker/settings", ".venv*", "build", "data", ".*", "services", "shared", "tests"]
external_toc_path = "docs/site/toc.yml"
html_extra_path = ["index.html"]
# `diagrams.js` draws the Mermaid diagrams with the copy of Mermaid that this package contains, so the site works without a network.
html_static_path = ["static", str(files("mmdc") / "assets")]
html_js_files = ["diagrams.js"]

myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]
# A link to a folder is shown as text. `tests/contract/test_links.py` checks all links, those to folders too.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]
