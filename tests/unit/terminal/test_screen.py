"""What a terminal shows, and what a pipe gets."""

import os
import pty
import subprocess
import sys
import termios

import pytest

from snakemake_logger_plugin_saliency_assay.screen import RED, Capture, Screen


def test_lines_are_printed_above_the_status_which_replaces_itself() -> None:
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 9))
    screen = Screen(end, live=True, color=True)
    screen.update("1 of 3 jobs")
    screen.show(["error"], RED)
    screen.update("")
    expected = "\r\x1b[K1 of 3 j" + "\r\x1b[K\x1b[31merror\x1b[0m\r\n1 of 3 j" + "\r\x1b[K"
    written = ""
    while len(written) < len(expected):  # each read returns what the terminal has passed on so far
        written += os.read(terminal, 1000).decode()
    os.close(end)
    os.close(terminal)
    assert written == expected


def test_a_pipe_gets_lines_alone() -> None:
    reader, writer = os.pipe()
    screen = Screen(writer, live=False, color=False)
    screen.update("status")
    screen.show(["error", "log"], RED)
    assert os.read(reader, 100) == b"error\nlog\n"
    os.close(reader)
    screen.show(["lost"])  # the reader has gone, which is no error
    os.close(writer)


def test_what_jobs_print_is_captured_until_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    capture = Capture(output=True)
    subprocess.run(["sh", "-c", "echo one >&2; echo two; printf 'ten %%\\rhalf' >&2"], check=True)
    assert capture.lines() == ["one", "two"]
    subprocess.run([sys.executable, "-c", "print(' a line')"], check=True)
    assert capture.lines() == ["half a line"]
    os.write(2, b"rest")
    assert capture.end() == ["rest"]
    os.write(2, b"after\n")
    assert capfd.readouterr() == ("", "after\n")
