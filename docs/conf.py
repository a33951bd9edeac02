"""How the pages of this folder become a site: `make docs`."""

from tornpage import __version__

project = "tornpage"
author = "the tornpage team"
version = release = __version__

extensions = ["myst_parser", "sphinx_click"]
exclude_patterns = ["README.md"]
myst_heading_anchors = 4
"""Links to headings work as they do where the pages are read as plain files."""

html_theme = "furo"
html_title = "tornpage"
html_copy_source = False
html_show_sourcelink = False
nitpicky = True
