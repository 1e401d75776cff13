"""Copy figures of finished runs on real images to docs/images: ``python -m tools.study_pictures``.

Figures of runs that are absent are kept. None of them shows an image.
"""

import vl_convert

from tools.picture_records import PROGRAMS, write_record

NAME = "study_pictures"
SCALE = 1.5  # pixels of a PNG file for each pixel of the figure


def main() -> None:
    """Copy the figures of all runs that are present."""
    for program in PROGRAMS:
        if program.name != NAME or not program.needs[0].exists():
            continue
        [picture], [figure] = program.pictures, program.needs
        image = figure.read_text(encoding="utf-8")
        if picture.suffix == ".png":
            picture.write_bytes(vl_convert.svg_to_png(image, scale=SCALE))
        else:
            picture.write_text(image, encoding="utf-8")
        write_record(picture)


if __name__ == "__main__":
    main()
