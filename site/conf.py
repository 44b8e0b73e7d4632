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
# The color of the explorer.
COLORED = ["color-brand-primary", "color-brand-content", "color-brand-visited", "color-api-name", "color-api-pre-name"]
html_theme_options = {
    "light_css_variables": dict.fromkeys(COLORED, "#1864ab"),
    "dark_css_variables": dict.fromkeys(COLORED, "#79b8f3"),
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


def _cite(app, doctree, docname):
    """A citation such as `docs/spec/onnx.md §4.6` is a link to the clause."""
    for literal in list(doctree.findall(nodes.literal)):
        cited = re.fullmatch(r"docs/([\w/-]+)\.md(?:\s§(\d+(?:\.\d+)*))?", literal.astext())
        if cited and cited[1] in app.env.found_docs and not isinstance(literal.parent, nodes.reference):
            clause = f"#s{cited[2].replace('.', '-')}" if cited[2] else ""
            uri = app.builder.get_relative_uri(docname, cited[1]) + clause
            literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=uri, internal=True))


def setup(app):
    app.add_transform(Clauses)
    app.connect("doctree-resolved", _cite)
    app.connect("autodoc-process-docstring", _escape, priority=900)  # after napoleon
