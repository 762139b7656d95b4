"""Writes docs/settings.md from the declarations of the settings. Run it after changing one."""

from __future__ import annotations

from pathlib import Path

from ottla.settings.document import markdown

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"


def main() -> None:
    PAGE.write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
