"""Build the judge, its tariff and its API client from the settings."""

import os
from urllib.parse import urlsplit

from assay_judge import lexical
from assay_judge.api import Api, Calls
from assay_judge.judge_config import JudgeConfig, Price
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.openai_api import OpenAiApi, endpoint_of
from assay_judge.pricing import Tariff, tariff_of
from assay_judge.prompt import PROMPT_HASH, SCHEMA_HASH
from assay_runtime.config import secret
from assay_runtime.transport import host_in_clear
from assay_schema.settings import JudgeSettings, SettingsError


def key_of(settings: JudgeSettings) -> str:
    """Return the API's key, or an empty string.

    Raises `SettingsError` if its file cannot be read, or if the key would be sent unencrypted.
    """
    key = secret(settings.api_key, settings.api_key_file, "ASSAY_JUDGE_API_KEY_FILE").strip()
    # the SDK reads this variable
    sdk = "" if settings.backend == "openai" else os.environ.get("ANTHROPIC_BASE_URL", "")
    if key and (host := host_in_clear(settings.base_url or sdk)):
        raise SettingsError(
            f"judge.base_url (or ASSAY_JUDGE_BASE_URL) would send the key to {host} unencrypted: use https://, or a gateway on this host"
        )
    if not key.isascii():
        raise SettingsError(
            "judge.api_key (or the file judge.api_key_file) contains characters that no key has: use ASCII only"
        )
    return key


def judge_of(settings: JudgeSettings) -> JudgeIdentity:
    """Return the judge for the settings. Raises `SettingsError` for a model without a key."""
    backend, key = settings.backend, key_of(settings)
    if backend == "openai":
        return _openai(settings, key)
    if backend == "auto":
        backend = "anthropic" if key else "lexical"
    if backend == "lexical":
        return lexical.judge()
    if not key:
        raise SettingsError(
            f"judge.backend is {backend}, but there is no key: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE), "
            'or judge.backend = "lexical"'
        )
    return JudgeIdentity(backend, settings.model, PROMPT_HASH, SCHEMA_HASH, settings.effort)


def _openai(settings: JudgeSettings, key: str) -> JudgeIdentity:
    if "model" not in settings.model_fields_set:
        raise SettingsError("judge.backend is openai: set judge.model (ASSAY_JUDGE_MODEL) to a model of this API")
    if settings.base_url is None and not key:
        raise SettingsError(
            "judge.backend is openai: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE), or judge.base_url (ASSAY_JUDGE_BASE_URL) "
            "for an API that needs no key"
        )
    try:
        address = urlsplit(settings.base_url or "https://api")
        usable = (
            address.scheme in ("http", "https")
            and bool(address.hostname)
            and "@" not in address.netloc
            and address.port != 0
        )
    except ValueError:
        usable = False
    if not usable or address.query or address.fragment:
        raise SettingsError(
            "judge.base_url is not a valid API address: use https://HOST/v1, without user, password and query"
        )
    return JudgeIdentity(
        "openai", settings.model, PROMPT_HASH, SCHEMA_HASH, None, f"{endpoint_of(settings)} {settings.json_mode}"
    )


def tariff_for(settings: JudgeSettings, config: JudgeConfig, *, batch: bool = False) -> Tariff:
    """Return the tariff of the model.

    Raises `SettingsError` for a model without a price, because its cost could not be capped.
    """
    if settings.backend != "openai":
        return tariff_of(config, settings.model, batch=batch)
    read, written = settings.price_input_usd, settings.price_output_usd
    if (read is None) != (written is None):
        raise SettingsError("judge.price_input_usd and judge.price_output_usd belong together: set both")
    if read is not None and written is not None:
        return Tariff(Price(input=read, output=written, cache_read=read, cache_write=read))
    if settings.model not in config.prices.models:
        raise SettingsError(
            f"judge.model {settings.model!r} has no price, so its cost cannot be capped: set judge.price_input_usd and "
            "judge.price_output_usd (ASSAY_JUDGE_PRICE_INPUT_USD, ASSAY_JUDGE_PRICE_OUTPUT_USD), in US dollars per million tokens; "
            "0 for a self-hosted model"
        )
    return tariff_of(config, settings.model, batch=False)


def api_of(settings: JudgeSettings) -> Calls:
    """Return the client for single calls to the model."""
    key = key_of(settings)
    return OpenAiApi(settings, key) if settings.backend == "openai" else Api(settings, key)
