"""Jinja2 templates of HTML pages with a common layout (``templates/page.html.j2``)."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES, ASSETS = Path(__file__).with_name("templates"), Path(__file__).with_name("assets")


def page_templates(*folders: Path) -> Environment:
    """Return the templates in ``folders`` and those that all pages share. All values are escaped."""
    templates = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES, ASSETS]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # For the filter ``tojson``, which by default sorts keys, such as the models of a study.
    templates.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return templates
