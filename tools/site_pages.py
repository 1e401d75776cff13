"""Pages of the documentation site that are not Markdown files in ``docs/``: the changelog and the notebooks.

MkDocs calls these functions, see ``hooks`` in mkdocs.yml.
"""

import json
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BOOSTS = {
    "README.md": 0.3,
    "all_methods.md": 0.5,
    "changelog.md": 0.1,
    "comparison.md": 0.3,
    "decisions.md": 0.1,
    "configuration.md": 0.5,
    "howto/coming-from.md": 0.3,
    "notebooks/which_method.md": 0.4,
    "notebooks/my_method.md": 0.4,
    "data.md": 1.5,
    "models.md": 1.5,
    "imagenet.md": 0.5,
    "metrics/randomization.md": 0.7,
    "reliability.md": 1.5,
    "formats.md": 0.5,
    "scaling.md": 0.8,
    "transformers.md": 0.3,
} | {f"methods/{page}.md": 1.6 for page in ("cam", "path")}
"""Weights of pages in the search; 1 for the others."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changelog and a page for each notebook."""
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    for notebook in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        page = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, page, content=markdown_of(notebook)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link to the pages of notebooks instead of their files, and weigh the page in the search."""
    page.meta["search"] = {"boost": BOOSTS.get(page.file.src_uri, 1.0)}
    return markdown.replace(".ipynb)", ".md)")


def markdown_of(notebook: Path) -> str:
    """Return the cells of a notebook as Markdown, with a note on where to run it."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    title, *rest = [
        text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        for cell, text in zip(cells, texts, strict=True)
    ]
    return "\n\n".join([title, f"Run it with `jupyter lab docs/notebooks/{notebook.name}`.", *rest])
