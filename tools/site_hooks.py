"""Hooks of mkdocs: the site also has the files beside docs/ that its pages lead to.

Pages in docs/ are written to be read in the repository, so they link to `../README.md` or `../thrift_idl/….thrift`.
Such files join the site under the same path, the README as its first page.
"""

import re
from pathlib import Path
from posixpath import normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
_PAGES = {"README.md": "index.md"}
_ALWAYS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages lead to outside docs/, and what those pages lead to."""
    waiting = [*(page.src_uri for page in files.documentation_pages()), *_ALWAYS]
    seen = set(waiting)
    while waiting:
        uri = waiting.pop()
        source = ROOT / uri if uri in seen and (ROOT / uri).is_file() else Path(config.docs_dir, uri)
        if source.parent != Path(config.docs_dir):
            files.append(File.generated(config, _PAGES.get(uri, uri), abs_src_path=str(source)))
        if source.suffix != ".md":
            continue
        for link in _LINK.findall(source.read_text()):
            target = (source.parent / link).resolve()
            if target.is_file() and target.is_relative_to(ROOT) and not target.is_relative_to(config.docs_dir):
                found = target.relative_to(ROOT).as_posix()
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links as they are in the repository into those of the site."""
    source = Path(str(page.file.abs_src_path)).parent
    here = Path(page.file.src_uri).parent

    def of_site(match: re.Match[str]) -> str:
        target = (source / match[1]).resolve()
        if not target.is_relative_to(ROOT):
            return match[1]
        found = target.relative_to(ROOT)
        uri = (found.relative_to("docs") if found.is_relative_to("docs") else found).as_posix()
        return normpath("/".join([".."] * len(here.parts) + [_PAGES.get(uri, uri)]))

    return _LINK.sub(of_site, markdown)
