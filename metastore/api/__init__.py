"""What each Thrift method does: arguments in, one service call, result or exception out."""

import importlib
import pkgutil


def load() -> None:
    """Imports every module of this room, so that all of them have registered what they answer."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
