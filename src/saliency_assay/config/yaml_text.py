"""Check that the text of a configuration can be read, before anything is made of it.

Snakemake reads it, too, and before anything of ours runs; where its reader fails it prints a traceback. So ``make``
checks here first: ``python -m saliency_assay.config.yaml_text FILE``.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.config.errors import ConfigError

DEEPEST = 50  # levels; what a configuration can say has six
# The same in C where PyYAML was built with it.
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_text(path: Path, source: str) -> None:
    """Check that ``path`` holds YAML (or JSON) in which no key stands twice in one place.

    Raises:
        ConfigError: it does not, or there is no such file; the line begins with ``source``, and names the place.
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
        raise ConfigError(f"{source}: {_words(error)}") from None


def _check(text: str) -> None:
    try:
        json.loads(text, object_pairs_hook=_no_key_twice)
    except ConfigError:
        raise
    except RecursionError:
        raise ConfigError(f"lists and mappings in each other, expected {DEEPEST} levels at most") from None
    except ValueError:  # no JSON, as nearly always
        _check_depth(text)
        yaml.load(text, Loader=_Unique)


def _check_depth(text: str) -> None:
    """Check the parser's events: nothing is built of them, which a deep nesting or a loop would make fail."""
    anchors: list[str | None] = []  # of the collections that are open
    for event in yaml.parse(text, Loader=Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) and event.anchor in anchors:
            raise ConfigError(f"line {line}: *{event.anchor} stands within itself, expected no such loop")
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchors.pop()
        if len(anchors) > DEEPEST:
            raise ConfigError(
                f"line {line}: lists and mappings in each other, expected {DEEPEST} levels at most"
            )


class _Unique(Loader):  # type: ignore[misc]  # whichever of the two there is
    """A loader to which a key that stands twice is a fault; plain YAML takes the last one and says nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                place = f"line {key.start_mark.line + 1}"
                raise ConfigError(f"{place}: found a key that is no text but a list or mapping")
            if key.value in keys and key.tag != "tag:yaml.org,2002:merge":
                raise ConfigError(
                    f"line {key.start_mark.line + 1}: key {key.value!r} stands twice in one place"
                )
            keys.add(str(key.value))
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


def _no_key_twice(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ConfigError(f"key {key!r} stands twice in one place")
        made[key] = value
    return made


def _words(error: Exception) -> str:
    """Return the message of the parser, which has several lines, as one."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{place}not YAML: {' '.join(str(problem).split())}"


if __name__ == "__main__":
    try:
        check_text(Path(sys.argv[1]), sys.argv[1])
    except ConfigError as fault:
        sys.exit(str(fault))
