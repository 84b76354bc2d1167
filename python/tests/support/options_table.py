"""The table of options in `docs/python.md`, from `thalweg/grpc/_options.py`. Run it to write the table again."""

from pathlib import Path

from thalweg.grpc._options import OPTIONS

PAGE = Path(__file__).resolve().parents[3] / "docs/python.md"
_OPEN, _CLOSE = "<!-- options -->\n\n", "\n<!-- /options -->"


def table() -> str:
    """Returns the table as Markdown."""
    lines = ["| option | channel | server | support | |", "| --- | --- | --- | --- | --- |"]
    for name, option in sorted(OPTIONS.items()):
        sides = ["yes" if side else "" for side in (option.channel, option.server)]
        cells = [f"`{name}`", *sides, option.support.value, option.note.replace("|", "\\|")]
        lines.append("| " + " | ".join(cells).replace("|  |", "| |").replace("|  |", "| |") + " |")
    return "\n".join(line.replace("|  |", "| |") for line in lines) + "\n"


def written() -> str:
    """Returns the table that the page has."""
    return PAGE.read_text().split(_OPEN, 1)[1].split(_CLOSE, 1)[0]


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(_OPEN, 1)
    PAGE.write_text(before + _OPEN + table() + _CLOSE + rest.split(_CLOSE, 1)[1])
