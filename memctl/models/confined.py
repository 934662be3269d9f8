"""The settings as they are for what must not leave this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memctl.choices import Task
from memctl.config import Config
from memctl.models.endpoint import is_loopback
from memctl.models.providers import TASKS, endpoint_url, model_folder


def confined(config: Config) -> Config:
    """Return the settings without the models that are behind an endpoint on another machine.

    What those would do is then done the built-in way; vectors of such a model cannot be had.

    Raises:
        ConfigError: An endpoint that is configured has no address.
    """
    models: dict[str, Any] = {}
    for task in TASKS:
        url, name = endpoint_url(config, task), getattr(config.models, task)
        if url and not is_loopback(url):
            models |= {f"{task}_url": ""} | ({} if model_folder(name) else {task: ""})
    base_url = config.endpoint.base_url
    kept = base_url if base_url and is_loopback(base_url) else ""
    return replace(
        config,
        models=replace(config.models, **models),
        endpoint=replace(config.endpoint, base_url=kept),
    )


def withheld(config: Config, left: Config, task: Task) -> str:
    """Return the address of the model for a task that is left out for being on another machine.

    Args:
        config: The settings of the program.
        left: Those of what is private.
        task: Which.

    Returns:
        The address; "" where there is no such model, or it is not left out.

    Raises:
        ConfigError: An endpoint that is configured has no address.
    """
    url = endpoint_url(config, task)
    return url if url and not endpoint_url(left, task) else ""
