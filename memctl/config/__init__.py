"""Settings of the whole program: flags, environment variables and config.toml.

The only room that reads the environment.  It knows what a setting is called, which values it
takes and where its value came from; it never knows what a setting is used for.
"""

from memctl.config.loading import (
    check_base_url,
    config_path,
    endpoint_key,
    is_debugging,
    load_config,
    unknown_variables,
    variable_name,
    without_password,
)
from memctl.config.sections import (
    SECTIONS,
    BudgetSettings,
    Config,
    LimitSettings,
    LogSettings,
    QueryLogSettings,
    example_config,
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
    "endpoint_key",
    "example_config",
    "is_debugging",
    "load_config",
    "settings_of",
    "unknown_variables",
    "variable_name",
    "without_password",
]
