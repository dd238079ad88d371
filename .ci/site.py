"""Hooks for mkdocs: the pages in the order of docs/README.md, and links that leave docs/.

A link of the repository stays a link of the site: documents beside docs/ become pages, and files that they or
the pages name are copied below sources/. What `cargo doc` has made is there as api/.
"""

import logging
import posixpath
import re
import shutil
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def on_config(config):
    """Reads the order of the pages from the list of pages, whose bold lines are the sections."""
    sections = [{"The pages": "README.md"}]
    seen = {"README.md"}
    for line in (ROOT / "docs/README.md").read_text().splitlines():
        if bold := re.fullmatch(r"\*\*(.+)\*\*", line):
            sections.append({bold[1]: []})
        if not line.startswith("| "):
            continue
        for link in LINK.findall(line):
            page = link.split("#")[0].removeprefix("../")
            if page.endswith(".md") and page not in seen:
                seen.add(page)
                next(iter(sections[-1].values())).append(page)
    if (ROOT / "target/doc/lockstead/index.html").is_file():
        sections.append({"Rust API": "api/lockstead/index.html"})
        # It comes last (`on_post_build`). The pages above are links of docs/README.md, which a test follows.
        config.validation.nav.not_found = logging.INFO
    sections.append({"Changes": "CHANGELOG.md"})
    config["nav"] = sections
    # Places in pages have the names that the code host gives them.
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    return config


def anchor(heading, separator):
    """Returns the name of a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", separator)


def targets(markdown, folder):
    """Yields each link to a file of the repository, and the path of that file from the root."""
    for link in LINK.findall(markdown):
        if "://" in link or link.startswith(("#", "mailto:")):
            continue
        yield link, posixpath.normpath(posixpath.join(folder, link.split("#")[0]))


def folder_of(page):
    return "" if page in BESIDE else "docs"


def in_site(path):
    """Returns where the site has a file of the repository."""
    if path in BESIDE:
        return path
    return path.removeprefix("docs/") if path.startswith("docs/") else "sources/" + path


def on_files(files, config):
    """Adds the documents beside docs/, and the files outside that pages link to."""
    for page in BESIDE:
        files.append(File.generated(config, page, abs_src_path=str(ROOT / page)))
    for page in list(files.documentation_pages()):
        for _, path in targets(page.content_string, folder_of(page.src_uri)):
            place = in_site(path)
            if place.startswith("sources/") and not files.get_file_from_path(place):
                source = ROOT / path
                # A page of sources would be one of the site.
                if source.is_file() and source.suffix != ".md":
                    files.append(File.generated(config, place, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Has the links lead to where the site has what they name."""

    def replaced(match):
        link = match[1]
        for _, path in targets(match[0], folder_of(page.file.src_uri)):
            place, anchor = in_site(path), link.partition("#")[1:]
            if not place.startswith("sources/") or files.get_file_from_path(place):
                return "](" + place + "".join(anchor) + ")"
            # A folder, or a document of another package.
            return "]"
        return match[0]

    return LINK.sub(replaced, markdown)


def on_post_build(config):
    """Adds what `cargo doc` has made."""
    made = ROOT / "target/doc"
    if (made / "lockstead/index.html").is_file():
        shutil.copytree(made, Path(config["site_dir"]) / "api", dirs_exist_ok=True)
