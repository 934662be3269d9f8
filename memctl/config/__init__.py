"""Settings of the whole program: flags, environment variables and config.toml.

The only room that reads the environment.  It knows what a setting is called, which values it
takes and where its value came from; it never knows what a setting is used for.
"""

from memctl.config.endpoints import check_base_url, endpoint_key, without_password
from memctl.config.example_file import example
from memctl.config.naming import unknown_variables, variable_name
from memctl.config.reading import config_path, debug_wanted, load_config
from memctl.config.settings import (
    SECTIONS,
    BudgetSettings,
    Config,
    LimitSettings,
    LogSettings,
    QueryLogSettings,
    settings_of,
)

__all__ = [
    "SECTIONS",
    "BudgetSettings",
    "Config",
    "LimitSettings",
    "LogSettings",
    "QueryLogSettings",
    "check_base_url",
    "config_path",
    "debug_wanted",
    "endpoint_key",
    "example",
    "load_config",
    "settings_of",
    "unknown_variables",
    "variable_name",
    "without_password",
]
