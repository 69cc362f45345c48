"""README.md and docs/settings.md say what is so: commands, settings, links."""

import re
import subprocess
from pathlib import Path

from metastore import settings
from tools.update_readme import with_settings

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SETTINGS = (ROOT / "docs/settings.md").read_text()


def test_the_settings_are_those_of_the_server() -> None:
    assert with_settings(SETTINGS) == SETTINGS, "run `make generate`"
    for name in settings.Settings.model_fields:
        assert f"| `{name}` |" in SETTINGS


def test_variables_named_are_settings() -> None:
    known = {settings.environment_name(name) for name in settings.Settings.model_fields}
    named = set(re.findall(r"METASTORE_[A-Z_]+", README + SETTINGS))
    assert named
    assert named <= known


def test_make_targets_named_exist() -> None:
    targets = sorted(set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)))
    assert {"demo", "test"} <= set(targets)
    dry_run = subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True)
    assert dry_run.returncode == 0, dry_run.stderr


def test_help_shows_the_targets_the_readme_names() -> None:
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^  make ([a-z-]+)", shown, re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= listed


def test_links_lead_somewhere() -> None:
    headings = {"-".join(re.findall(r"\w+", line.lower())) for line in re.findall(r"^#+ (.*)$", README, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", README):
        path, _, anchor = target.partition("#")
        assert (ROOT / path).exists(), target
        assert path or anchor in headings, target


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    assert re.search(r"^make test\b", README, re.MULTILINE)
    assert re.search(r"^make test\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)
