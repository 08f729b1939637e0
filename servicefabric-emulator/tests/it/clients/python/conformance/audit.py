"""Compares what was sent with what the vendor's model says.

No key that it does not know, no type that it does not declare, no word that it does not list, nothing missing that it
requires. The client itself is lenient: it drops unknown keys, turns numbers into texts and keeps unknown words.
What it forgives, a stricter client need not.
"""

import re
from enum import Enum

from azure.servicefabric import models
from msrest.serialization import Model

DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z")
DURATION = re.compile(r"-?P(\d+D)?T(\d+H)?(\d+M)?(\d+(\.\d{1,7})?S)?")

# Words that the service sends although the generated code does not list them.
EXTRA_WORDS = {"FabricErrorCodes": {"FABRIC_E_CODE_PACKAGE_NOT_FOUND"}}

# What `PrimaryEpoch` is called below version 6.4. The library asks for single partitions in version 6.0, and drops it.
EXTRA_KEYS = {"CurrentConfigurationEpoch"}


def differences(value, data, where="answer"):
    """All differences between a deserialised value and the JSON that it came from, as texts."""
    if isinstance(value, list):
        if not isinstance(data, list):
            return [f"{where}: {data!r} is no array"]
        found = []
        for index, (item, raw) in enumerate(zip(value, data)):
            found += differences(item, raw, f"{where}[{index}]")
        return found
    if isinstance(value, dict):
        if not isinstance(data, dict):
            return [f"{where}: {data!r} is no object"]
        found = []
        for key, item in value.items():
            found += differences(item, data[key], f"{where}.{key}")
        return found
    if isinstance(value, Model):
        return _of_model(value, data, where)
    return []


def _of_model(value, data, where):
    if not isinstance(data, dict):
        return [f"{where}: {data!r} is no object"]
    model = type(value)
    found = []
    if getattr(model, "_subtype_map", None):
        found += _of_kind(model, data, where)
    known = {declared["key"]: name for name, declared in model._attribute_map.items()}
    for key in data:
        if key not in known and key not in EXTRA_KEYS:
            found.append(f"{where}: `{model.__name__}` has no `{key}`")
    enums = _enums(model)
    for key, name in known.items():
        declared = model._attribute_map[name]["type"]
        if data.get(key) is None:
            if model._validation.get(name, {}).get("required"):
                found.append(f"{where}: `{key}` is missing, which `{model.__name__}` requires")
            continue
        inside = f"{where}.{key}"
        found += _of_type(declared, data[key], inside)
        if name in enums and isinstance(data[key], str):
            found += _of_enum(enums[name], data[key], inside)
        found += differences(getattr(value, name), data[key], inside)
    return found


def _of_kind(model, data, where):
    """A family of models that the client tells apart by one key: it must have found a member of it."""
    kinds = model._subtype_map
    for name, known in kinds.items():
        key = model._attribute_map[name]["key"]
        if model.__name__ in known.values():
            continue
        return [f"{where}: `{key}` is {data.get(key)!r}, expected one of {sorted(known)}"]
    return []


def _of_type(declared, data, where):
    if declared.startswith("["):
        good = isinstance(data, list)
        inner = declared[1:-1]
        if good:
            return [text for item in data for text in _of_type(inner, item, f"{where}[]")]
    elif declared.startswith("{"):
        good = isinstance(data, dict)
    elif declared == "str":
        good = isinstance(data, str)
    elif declared in ("int", "long"):
        good = isinstance(data, int) and not isinstance(data, bool)
    elif declared == "float":
        good = isinstance(data, (int, float)) and not isinstance(data, bool)
    elif declared == "bool":
        good = isinstance(data, bool)
    elif declared == "iso-8601":
        good = isinstance(data, str) and DATE.fullmatch(data) is not None
    elif declared == "duration":
        good = isinstance(data, str) and DURATION.fullmatch(data) is not None
    else:
        good = declared == "object" or isinstance(data, dict)
    return [] if good else [f"{where}: {data!r} is no {declared}"]


def _of_enum(enum, word, where):
    words = {member.value for member in enum} | EXTRA_WORDS.get(enum.__name__, set())
    return [] if word in words else [f"{where}: `{word}` is no {enum.__name__}: {sorted(words)}"]


def _enums(model):
    """Which attributes are words of an enumeration. Only the documentation of the generated classes says so."""
    if "_audited_enums" not in model.__dict__:
        text = re.sub(r"\s+", " ", model.__doc__ or "")
        found = {}
        for name, enum in re.findall(r":type (\w+): str or ~azure\.servicefabric\.models\.(\w+)", text):
            candidate = getattr(models, enum, None)
            if isinstance(candidate, type) and issubclass(candidate, Enum):
                found[name] = candidate
        model._audited_enums = found
    return model._audited_enums
