"""The documentation site of the Python package: pages of this folder, and a reference made of the docstrings.

Built by docs/python/build with the package installed."""

import re

import truecast

project = "truecast"
author = "the authors of truecast"
release = truecast.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.intersphinx", "myst_parser"]
exclude_patterns = ["README.md", "site", "out"]
html_theme = "furo"
html_show_copyright = False
html_title = f"truecast {release}"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_mock_imports = ["onnx", "ray", "torch"]
napoleon_google_docstring = False
default_role = "py:obj"
myst_heading_anchors = 3
# Other projects' inventories would need the network.
intersphinx_mapping = {}


def _escape(app, what, name, object, options, lines):
    """reStructuredText takes a name that ends with an underscore for a link: `from_`."""
    lines[:] = [re.sub(r"^(:(?:param|type) \w*[^_\W])_:", r"\1\\_:", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _escape, priority=900)  # after napoleon
