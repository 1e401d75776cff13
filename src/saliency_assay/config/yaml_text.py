"""Check of the text of a configuration, before it is parsed.

Snakemake parses the file before it runs any code of this project and prints a traceback on failure. The command
``saliency-assay`` therefore checks the text first.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.config.errors import ConfigError

DEEPEST = 50  # levels; a valid configuration has at most six
# The faster loader in C if PyYAML was built with it.
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_text(path: Path, source: str) -> None:
    """Check that ``path`` contains a mapping in YAML (or JSON) without duplicate keys.

    Raises:
        ConfigError: the file does not exist or is not valid; the message starts with ``source`` and names the place.
    """
    try:
        _check(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: expected text in UTF-8; {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: {_one_line(error)}") from None


def _check(text: str) -> None:
    """Check ``text`` as JSON, and as YAML if it is not JSON."""
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys)
    except ConfigError:
        raise
    except RecursionError:
        raise ConfigError(f"lists and mappings in each other, expected {DEEPEST} levels at most") from None
    except ValueError:  # not JSON, so it is checked as YAML
        _check_depth(text)
        content = yaml.load(text, Loader=_Unique)
    if not isinstance(content, dict):
        actual = "nothing" if content is None else type(content).__name__
        raise ConfigError(
            f"found {actual}, expected a mapping with the keys data, models, methods and studies"
        )


def _check_depth(text: str) -> None:
    """Check the depth and the aliases by parser events alone.

    Constructing the data would fail on deep nesting, and on an alias that refers to a collection around it.
    """
    anchors: list[str | None] = []  # anchors of the open collections
    for event in yaml.parse(text, Loader=Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) and event.anchor in anchors:
            raise ConfigError(
                f"line {line}: found *{event.anchor} within &{event.anchor}, expected no recursion"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchors.pop()
        if len(anchors) > DEEPEST:
            raise ConfigError(
                f"line {line}: lists and mappings in each other, expected {DEEPEST} levels at most"
            )


class _Unique(Loader):  # type: ignore[misc]  # the base class depends on how PyYAML was built
    """A YAML loader that refuses duplicate keys, of which PyYAML silently keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                place = f"line {key.start_mark.line + 1}"
                raise ConfigError(f"{place}: found a list or mapping as a key, expected text")
            if key.value in keys and key.tag != "tag:yaml.org,2002:merge":
                raise ConfigError(
                    f"line {key.start_mark.line + 1}: found the key {key.value!r} twice, expected unique keys"
                )
            keys.add(str(key.value))
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _unique_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict, which must not have a duplicate key."""
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ConfigError(f"found the key {key!r} twice, expected unique keys")
        mapping[key] = value
    return mapping


def _one_line(error: Exception) -> str:
    """Return the message of the parser, which has several lines, as one line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{place}not YAML: {' '.join(str(problem).split())}"
