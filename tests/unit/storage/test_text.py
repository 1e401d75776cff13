import numpy as np

from saliency_assay.storage.text import decode, encode


def test_texts_return_from_their_bytes() -> None:
    texts = ["cat/a.jpg", "", "Ø/猫.png"]
    rows = encode(texts)
    assert (rows.dtype, rows.shape) == (np.uint8, (3, 10))
    assert decode(rows) == texts
    assert encode(["", ""]).shape == (2, 1)


def test_a_name_that_is_not_utf8_is_replaced() -> None:
    name = b"a\xff.png".decode("utf-8", "surrogateescape")
    assert encode([name]).tobytes() == b"a\xff.png"
    assert decode(encode([name])) == ["a\ufffd.png"]
