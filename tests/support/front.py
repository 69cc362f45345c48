"""A front of several metastores, started and stopped as a user would."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.server import MetastoreServer


class FrontServer(MetastoreServer):
    """`metastore federate` with one worker. `backends`: by name their settings as TOML; `more`: the rest of the file.

    `environment`: further variables.
    """

    command = "federate"
    from_template = False

    def __init__(
        self,
        directory: Path,
        backends: Mapping[str, str],
        *options: str,
        more: str = "",
        environment: dict[str, str] | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "federation.toml"
        self.write(backends, more)
        command = ("--config", str(self.file), "--workers", "1", *options)
        super().__init__(directory / "data", *command, environment=environment)

    def write(self, backends: Mapping[str, str], more: str = "") -> None:
        """Writes the file again."""
        parts = [more, *(f"[backends.{name}]\n{text}" for name, text in backends.items())]
        new = self.file.with_suffix(".new")
        new.write_text("\n".join(parts))
        new.replace(self.file)
