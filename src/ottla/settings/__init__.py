"""What can be set, declared once: parsing, help, documentation and DescribeConfigs are derived."""

from ottla.settings.broker import BrokerSettings
from ottla.settings.topic import TopicSettings

__all__ = ["BrokerSettings", "TopicSettings"]
