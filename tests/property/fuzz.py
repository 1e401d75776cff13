"""Give every reader files that are damaged or made to do harm, and count what comes of it.

``python tests/property/fuzz.py --rounds 2000`` (``--reader NAME`` for one, ``--seed``); the same seed gives the same
files. A file is read whole, or refused in one line of a ValueError or OSError that names where it lies. Anything else
is a fault: another exception, a line without the place, a file that came into being, memory or time that the file's
size does not explain, content that a checksum should have refused. Status 1 if there is one.
"""

import argparse
import logging
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutations import mutated_bytes, mutation_of
from readers import READERS, Reader

from saliency_assay.runtime.job import LONGEST, in_one_line

SECONDS = 20
ROOM = 3 << 30  # bytes of address space that a reader may ask for beyond what the program has


class TooSlowError(BaseException):
    """A reader took longer than ``SECONDS``."""


@contextmanager
def bounded() -> Iterator[None]:
    """The program's address space can grow by ``ROOM``, so that nothing absurd is ever taken from the machine."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def files_below(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def tried(reader: Reader, folder: Path, whole: object, damaged: bool) -> str:
    """Return the outcome of reading ``folder``: ``read``, ``refused``, or a description of the fault."""
    before = files_below(folder.parent)
    try:
        signal.alarm(SECONDS)
        content = reader.read(folder)
        outcome = "read"
        if reader.checked and damaged and content != whole:
            outcome = "fault: read as something else, though damaged"
    except (ValueError, OSError) as error:
        outcome, line = "refused", in_one_line(error)
        if len(str(error).strip().splitlines()) != 1:
            outcome = f"fault: not one line: {str(error)[:300]!r}"
        elif len(line) > LONGEST + 3 or not line.isprintable():
            outcome = f"fault: a line of {len(line)} characters: {line[:300]!r}"
        elif str(folder) not in line:
            outcome = f"fault: does not say where: {line[:300]!r} ({type(error).__name__})\n{traceback.format_exc()}"
    except (Exception, TooSlowError) as error:
        outcome = f"fault: {type(error).__name__}: {str(error)[:300]}\n{traceback.format_exc()}"
    finally:
        signal.alarm(0)
    if appeared := {path for path in files_below(folder.parent) - before if "__pycache__" not in path}:
        outcome = f"fault: left behind {sorted(appeared)}"
    return outcome


def fuzz(name: str, rounds: int, seed: int, faults: list[str]) -> Counter[str]:
    """``rounds`` mutations of one reader's files; what came of them, and in ``faults`` the words of what should not."""
    reader, counts = READERS[name], Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "inside", "data")
        folder.mkdir(parents=True)
        reader.make(folder)
        whole = reader.read(folder)
        os.chdir(folder)  # where code from a file would leave its mark
        originals = {file: (folder / file).read_bytes() for file in reader.mutated}
        for number in range(rounds):
            draw = random.Random(f"{seed} {name} {number}")
            file = draw.choice(reader.mutated)
            mutation = mutation_of(file, draw)
            try:
                changed = mutation(originals[file], draw)
            except Exception:  # a legacy file is no zip
                mutation = mutated_bytes
                changed = mutation(originals[file], draw)
            (folder / file).write_bytes(changed)
            outcome = tried(reader, folder, whole, damaged=mutation is mutated_bytes)
            counts[outcome.partition(":")[0]] += 1
            if outcome.startswith("fault"):
                faults.append(f"{name} {number} ({file}): {outcome}")
            (folder / file).write_bytes(originals[file])
            shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        os.chdir(scratch)
        assert reader.read(folder) == whole, f"{name}: no longer reads what it read at first"
        os.chdir("/")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=1000, help="mutations of each reader's files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", choices=sorted(READERS), action="append")
    parser.add_argument("--show", type=int, default=3, help="faults of each reader to show in full")
    options = parser.parse_args()

    def too_slow(number: int, frame: object) -> None:
        raise TooSlowError(f"{SECONDS} s")

    signal.signal(signal.SIGALRM, too_slow)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")  # as in a job, where they go to the log
    total, faulty = Counter[str](), 0
    with bounded():
        for name in options.reader or READERS:
            faults: list[str] = []
            began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            counts = fuzz(name, options.rounds, options.seed, faults)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
            seconds = time.monotonic() - began
            print(
                f"{name:16} {options.rounds} mutated files: {counts['refused']} refused, {counts['read']} read, "
                f"{counts['fault']} faults; {grown} MiB more at the peak, {seconds:.0f} s",
                flush=True,
            )
            for fault in faults[: options.show]:
                print(f"  {fault}", flush=True)
            total += counts
            faulty += len(faults)
    print(
        f"{'all':16} {total.total()} mutated files: {total['refused']} refused, {total['read']} read, {faulty} faults"
    )
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
