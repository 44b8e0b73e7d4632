"""The site of the project: its pages, as site/stage.py places them, and the docstrings of the Python package.

Built by site/build with the package installed."""

import re

import truecast
from docutils import nodes
from docutils.transforms import Transform

project = "truecast"
author = "the authors of truecast"
release = truecast.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
exclude_patterns = ["extra"]
html_theme = "furo"
html_show_copyright = False
html_title = "truecast"
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_favicon = "static/mark.svg"
html_logo = "static/mark.svg"
html_copy_source = False
# Colors of the explorer.
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1864ab", "color-brand-content": "#1864ab"},
    "dark_css_variables": {"color-brand-primary": "#79b8f3", "color-brand-content": "#79b8f3"},
}
pygments_style = "default"
pygments_dark_style = "github-dark"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_mock_imports = ["onnx", "ray", "torch"]
napoleon_google_docstring = False
default_role = "py:obj"
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline", "colon_fence"]
highlight_language = "text"


class Clauses(Transform):
    """A permalink for each numbered section: 4.6 is #s4-6, whatever its title."""

    default_priority = 500

    def apply(self):
        for section in self.document.findall(nodes.section):
            number = re.match(r"(\d+(?:\.\d+)*)\.? ", section[0].astext())
            name = f"s{number[1].replace('.', '-')}" if number else None
            if name and name not in self.document.ids:
                section["ids"].insert(0, name)
                self.document.ids[name] = section


def _escape(app, what, name, object, options, lines):
    """reStructuredText takes a name that ends with an underscore for a link: `from_`."""
    lines[:] = [re.sub(r"^(:(?:param|type) \w*[^_\W])_:", r"\1\\_:", line) for line in lines]


def setup(app):
    app.add_transform(Clauses)
    app.connect("autodoc-process-docstring", _escape, priority=900)  # after napoleon
