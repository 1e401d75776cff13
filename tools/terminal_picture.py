"""Write docs/images/terminal.png, a picture of a run on a terminal: ``python -m tools.terminal_picture``.

Runs a small study, one method of which fails, in tmux, and takes the picture when another job shows its progress.
Needs Debian's packages tmux and chromium. Takes about two minutes.
"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tools.source_tree import ROOT

STUDY = """
results: results
device: cpu
data:
  digits: {kind: digits, max_explained_images: 360}
models:
  digits:
    {architecture: resnet8, data: digits, trained_on: class, batch_size: 20, training: {epochs: 10, batch_size: 64}}
methods:
  gradient: {}
  inverted: {function: "my_methods:inverted"}
  integrated_gradients: {steps: 100}
  smoothgrad: {samples: 50}
metrics: {insertion: {}}
studies:
  digits: {kind: fidelity, model: digits}
"""
METHODS = """def inverted(classifier, pixels, targets, *, generator=None):
    if pixels.min() < 0.5:
        raise ValueError("pixels: found 0, expected values above 0.5")
"""
COMMAND = "make run CONFIG=study.yaml"
"""As printed in the picture."""
RUN = f"{sys.executable} -m snakemake --configfile study.yaml --cores 2 --keep-going"
UNTIL = re.compile(r"\d failed"), re.compile(r"maps \d+/|\d of \d+ parts")
OUTPUT = ROOT / "docs/images/terminal.png"
STYLE = (
    "background: #1e1e1e; color: #d4d4d4; font: 14px/1.3 'DejaVu Sans Mono', monospace; padding: 12px 16px"
)


def captured(folder: Path) -> str:
    """Return the lines of the terminal with escape sequences of color, once the picture is worth taking."""
    tmux = ["tmux", "-L", f"picture{os.getpid()}"]
    options = f"--snakefile {ROOT}/workflow/Snakefile --profile {ROOT}/profiles/local"
    command = f"printf '$ {COMMAND}\\n'; {RUN} {options} 2>&1"
    subprocess.run([*tmux, "new-session", "-d", "-x", "88", "-y", "20", command], cwd=folder, check=True)
    try:
        while True:
            time.sleep(0.5)
            pane = subprocess.run(
                [*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True
            )
            if all(pattern.search(pane.stdout) for pattern in UNTIL):
                return pane.stdout.rstrip()
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def page_of(text: str) -> str:
    """Return an HTML page of the captured ``text``; its only color is the red of errors."""
    lines = [line for line in text.splitlines() if not line.startswith("Using profile")]
    escaped = html.escape("\n".join(lines))
    red = re.sub(
        r"\x1b\[31m(.*?)\x1b\[(?:0|39)m", r'<span style="color: #f48771">\1</span>', escaped, flags=re.DOTALL
    )
    plain = re.sub(r"\x1b\[[\d;]*m", "", red)
    return f'<pre style="{STYLE}; display: inline-block">{plain}</pre>'


def main() -> None:
    """Run the study and write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
        (folder / "my_methods.py").write_text(METHODS, encoding="utf-8")
        text = captured(folder)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_content(page_of(text))
        page.locator("pre").screenshot(path=OUTPUT)


if __name__ == "__main__":
    main()
