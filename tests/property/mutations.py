"""Mutations of files: of any bytes, of text, of JSON by its structure, and of zip files by their members."""

import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import yaml

Mutation = Callable[[bytes, random.Random], bytes]

NUMBERS = (
    0,
    1,
    2,
    3,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    (1 << 63) - 1,
    (1 << 64) - 1,
)
WORDS = (
    b"../../etc/passwd",
    b"/etc/passwd",
    b"\0",
    b"\x1b[2J",
    b"NaN",
    b"1e400",
    b"-1",
    b"9" * 5000,
    b"[" * 3000,
    b"\xff\xfe",
    b"<!DOCTYPE x [<!ENTITY a 'aa'>]>",
    b"&a;",
    b"%!PS-Adobe-3.0 EPSF-3.0\n",
    b"cposix\nsystem\n(touch ran\ntR.",
    b"\x80\x02",
    b"PK\x05\x06",
    b"..",
    b"\n",
    b"\t",
    b" ",
    b"\xc3\xa9",
    b"{",
    b"}",
    b"&x [*x]",
    b"*x",
    b"!!python/name:os.system",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    1.5,
    10**12,
    10**400,
    -(10**30),
    float("nan"),
    float("inf"),
    1e308,
    "",
    "x",
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    "a/../../b",
    "\0",
    "\ud800",
    "\x1b[2J\n\r",
    "o" * 3000,
    "0" * 300,
    "~~~~",
    "x" * 70_000,
    [],
    {},
    [[]],
    [1e9] * 8,
    [0] * 7,
    [0, 0, 39, 0, 39, 29] * 400,
    {"size": [30, 40], "counts": [1200]},
    {"size": [10**9, 10**9], "counts": "o"},
    {"size": [30, 40], "counts": "00000oooooooo"},
    {"id": 1},
    "uint8",
    "float64",
    "|O",
    "string",
    2,
    "group",
    [6, 10**12],
    [1 << 62, 1, 5, 5],
    [0, 5],
    [1, 1, 5, 5],
    [{"name": "numcodecs.pickle"}],
    [{"name": "gzip"}],
    {"name": "regular", "configuration": {"chunk_shape": [1 << 40, 1, 5, 5]}},
)


def mutated_bytes(content: bytes, draw: random.Random) -> bytes:
    """One of the changes that damage and malice make to bytes; headers are changed more often than what follows."""
    data, length = bytearray(content), len(content)
    reach = min(length, 300) if draw.random() < 0.5 else length
    at = draw.randrange(reach + 1)
    kind = draw.randrange(9)
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        for _ in range(draw.choice((1, 1, 2, 8))):
            if length:
                data[draw.randrange(reach)] ^= 1 << draw.randrange(8)
    elif kind == 2:
        data[at : at + draw.choice((1, 2, 4, 16))] = bytes(
            [draw.choice((0, 0xFF, 0x7F, 0x80))]
        ) * draw.choice((1, 2, 4, 16))
    elif kind == 3:
        width = draw.choice((1, 2, 4, 8))
        number = draw.choice(NUMBERS) % (1 << 8 * width)
        data[at : at + width] = number.to_bytes(width, draw.choice(("big", "little")))
    elif kind == 4:
        data[at:at] = draw.randbytes(draw.choice((1, 3, 50)))
    elif kind == 5:
        del data[at : at + draw.choice((1, 2, 5, 100))]
    elif kind == 6:
        start = draw.randrange(length + 1)
        data[at:at] = data[start : start + draw.choice((4, 40, 400))]
    elif kind == 7:
        word = draw.choice(WORDS)
        data[at : at + draw.choice((0, len(word)))] = word
    else:
        return draw.choice((b"", bytes(data) * 2, draw.randbytes(64), bytes(length), bytes(data[::-1])))
    return bytes(data)


def mutated_json(content: bytes, draw: random.Random) -> bytes:
    """A value of the text replaced, taken away, or doubled."""
    tree = json.loads(content)
    for _ in range(draw.choice((1, 1, 2))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = draw.choice(places)
        kind = draw.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(key, holder[key])
        else:
            holder[key] = draw.choice(VALUES)
    return json.dumps(tree).encode()


def mutated_yaml(content: bytes, draw: random.Random) -> bytes:
    """As ``mutated_json``; keys, too, become what no key should be."""
    tree = yaml.safe_load(content)
    holder, key = draw.choice(list(_places(tree)))
    if draw.random() < 0.3 and isinstance(holder, dict):
        holder[draw.choice((None, 1, 1.5, True, "", "x" * 200, "a b", "\x1b[2J", "../x"))] = holder.pop(key)
        return yaml.safe_dump(tree).encode()
    return yaml.safe_dump(json.loads(mutated_json(json.dumps(tree).encode(), draw))).encode()


def _places(node: Any) -> Any:
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)


def mutated_zip(content: bytes, draw: random.Random) -> bytes:
    """The archive written anew with one of its members changed, lost, doubled, renamed or made a bomb."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(member.filename, archive.read(member)) for member in archive.infolist()]
    at = draw.randrange(len(members))
    name, data = members[at]
    packing, kind = zipfile.ZIP_STORED, draw.randrange(8)
    if kind == 0:
        del members[at]
    elif kind == 1:
        members.append(members[at])
    elif kind == 2:
        hostile = ("../escaped", "/tmp/escaped", "..\\escaped", "a/../../escaped", "\0", "", "x" * 3000)
        members[at] = (draw.choice(hostile), data)
    elif kind == 3:
        packing = draw.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        members[at] = (name, data if draw.random() < 0.5 else bytes(1 << 22))
    elif kind == 4 and data[:1] in (b"{", b"["):
        members[at] = (name, mutated_json(data, draw))
    elif kind == 5:
        members.insert(at, (name + "/", b""))
    else:
        members[at] = (name, mutated_bytes(data, draw))
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", packing) as archive:
        warnings.simplefilter("ignore")  # of names that stand twice
        for number, (name, data) in enumerate(members):
            member = zipfile.ZipInfo(name)
            member.compress_type = packing
            if number == at and draw.random() < 0.1:
                member.external_attr = 0o120777 << 16  # a symbolic link
            archive.writestr(member, data)
    return target.getvalue()


def mutation_of(name: str, draw: random.Random) -> Mutation:
    """A kind of mutation that the file ``name`` can have."""
    if name.endswith(".yaml") and draw.random() < 0.6:
        return mutated_yaml
    if name.endswith(".json") and draw.random() < 0.7:
        return mutated_json
    if name.endswith((".zip", ".pt")) and draw.random() < 0.6:
        return mutated_zip
    return mutated_bytes
