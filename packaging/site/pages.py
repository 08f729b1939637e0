"""Adapts the pages, which are written for readers of the repository, to the site."""

import re

# The text of a link, and a target that leaves the folder of the pages.
OUTSIDE = re.compile(r"\]\(\.\./([^)\s]+)\)")
# A block of code with its language, and words for the tests of the pages behind it.
FENCE = re.compile(r"^(\s*```\w+)[ ,].*$", re.MULTILINE)


def on_page_markdown(markdown, config, **_):
    repository = config["repo_url"].rstrip("/")
    markdown = FENCE.sub(r"\1", markdown)
    return OUTSIDE.sub(rf"]({repository}/blob/main/\1)", markdown)
