"""Jinja2 templates of HTML pages, and the shell that all pages share (``templates/page.html.j2``)."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES, ASSETS = Path(__file__).with_name("templates"), Path(__file__).with_name("assets")


def page_templates(*folders: Path) -> Environment:
    """Return the templates in ``folders`` and those that all pages share. They show every value as text."""
    return Environment(
        loader=FileSystemLoader([*folders, TEMPLATES, ASSETS]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
