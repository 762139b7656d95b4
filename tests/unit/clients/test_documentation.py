"""The page about the clients has every setting, as it is declared."""

from pathlib import Path

import pytest

from ottla.clients.connection_settings import ConnectionSettings
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.producer.settings import ProducerSettings
from ottla.settings.declare import declarations, render

PAGE = Path(__file__).parents[3] / "docs" / "python-clients.md"


@pytest.mark.parametrize("settings", [ConnectionSettings, ProducerSettings, ConsumerSettings])
def test_every_setting_is_on_the_page(settings: type) -> None:
    page = PAGE.read_text()

    for declared in declarations(settings):
        default = render(declared.default)
        shown = f"`{default}`" if default else ""
        assert f"| `{declared.attribute}` | {shown} | {declared.doc} |" in page
