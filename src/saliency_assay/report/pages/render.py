"""Rendering of the report's pages from the Jinja2 templates in ``templates``."""

from pathlib import Path

from saliency_assay.plotting.page import page_templates

TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **values: object) -> str:
    """Render the page ``template`` with ``values`` as HTML."""
    return page_templates(TEMPLATES).get_template(f"{template}.html.j2").render(values)
