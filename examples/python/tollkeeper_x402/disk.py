"""Folders that survive a crash of the machine: a new name is lost until its folder is on the disk."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Writes a folder's entries to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Makes a folder with its parents, and writes each new name to the disk."""
    at = folder.absolute()
    missing = [one for one in (at, *at.parents) if not one.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for one in missing:
        sync_folder(one.parent)
