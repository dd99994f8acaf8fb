"""Shows cells of shell commands (`!hotshot …`) as a terminal does: `$ hotshot …`."""

from docutils import nodes
from sphinx.application import Sphinx


def as_console(app: Sphinx, doctree: nodes.document) -> None:
    """Replace the source of every cell that only calls commands."""
    for block in doctree.findall(nodes.literal_block):
        if block.astext().startswith("!"):
            lines = [f"$ {line[1:]}" if line.startswith("!") else line for line in block.astext().splitlines()]
            text = "\n".join(lines)
            block.rawsource, block.children = text, [nodes.Text(text)]
            block["language"] = "console"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-read", as_console)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
