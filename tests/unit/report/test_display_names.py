"""Keys of entries in texts for people, and names of pages."""

import pytest
from display_names import keys_in, keys_of, texts_of_page
from pipelines import TINY, params

KEYS = keys_of(TINY)


@pytest.mark.parametrize(
    ("html", "keys"),
    [
        ("<p>gradcam is first</p>", ["gradcam"]),
        ("<th>random</th>", ["random"]),
        ("<h2>sensitivity_max: scores</h2>", ["sensitivity_max"]),
        ('<img alt="aopc_morf">', ["aopc_morf"]),
        ("<p>random pixels, edge detection and gradients</p>", []),
        ("<td>Grad-CAM <small><code>gradcam</code></small></td>", []),
        ("<pre>methods: {gradcam: {}}</pre><script>gradcam</script>", []),
    ],
)
def test_keys_outside_code_are_listed(html: str, keys: list[str]) -> None:
    messages = list(keys_in(texts_of_page(html), KEYS))
    assert len(messages) == len(keys)
    for message, key in zip(messages, keys, strict=True):
        assert key in message


def test_the_page_of_a_study_has_no_colon() -> None:
    """A colon ends the name of a reStructuredText target, and Snakemake makes each page one."""
    named = {**TINY["studies"]["digits"], "label": "Digits: 8 × 8 pixels"}
    studies = params({**TINY, "studies": {**TINY["studies"], "digits": named}}).studies
    assert studies.report_page({"study": "digits"}) == "Study Digits – 8 × 8 pixels"
