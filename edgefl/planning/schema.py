"""The JSON Schema of a scenario file, for editors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from edgefl.core import catalogue
from edgefl.core.components import Nothing
from edgefl.core.errors import UserError, in_one_line
from edgefl.core.notes import note
from edgefl.core.params import kinds
from edgefl.core.scenario import Evaluate, Public, Scenario, Server, Task, Wire

# Base classes of records found by name -> their kind, and the default name.
_RECORDS = {
    "Optimizer": ("optimizers", "sgd"),
    "Schedule": ("schedules", ""),
    "Sampler": ("samplers", ""),
    "Availability": ("availability", ""),
    "Speed": ("speed", ""),
}


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a scenario, with all components found on this machine.

    A component whose file fails is named in a note and left out.
    """
    found = Scenario.model_json_schema(mode="validation")
    definitions = found["$defs"]
    places = {record: kinds(record) for record in (Scenario, Task, Public, Server, Wire, Evaluate)}
    for kind in sorted({kind for fields in places.values() for kind in fields.values()}):
        definitions[kind] = _component(kind, definitions)
    for kind, default in _RECORDS.values():
        definitions[kind] = _component(kind, definitions, default)
    for record, (kind, _) in _RECORDS.items():
        definitions[record] = {"$ref": f"#/$defs/{kind}"}
    for owner, fields in places.items():
        properties = (found if owner is Scenario else definitions[owner.__name__])["properties"]
        for key, kind in fields.items():
            named = {"$ref": f"#/$defs/{kind}"}
            optional = owner.model_fields[key].default is None
            _takes(properties[key], *([named, {"type": "null"}] if optional else [named]))
    measures = {"type": "array", "items": {"$ref": "#/$defs/measures"}}
    _takes(definitions["Evaluate"]["properties"]["measures"], measures, {"type": "null"})
    one = {"$ref": "#/$defs/models"}
    _takes(found["properties"]["model"], one, {"type": "array", "items": one, "minItems": 1})
    profiles = {"enum": list(catalogue.entries("profiles"))}
    own = {"type": "object", "required": ["like"], "properties": {"like": profiles}}
    _takes(found["properties"]["fleet"], profiles, own, {"$ref": "#/$defs/Fleet"})
    found["properties"]["sweep"] = {
        "type": "object",
        "description": "keys with lists of values (their product), or 'runs' with a list of paired settings",
        "properties": {"runs": {"type": "array", "items": {"type": "object"}}},
        "additionalProperties": {"type": "array"},
    }
    found["properties"]["scales"] = {
        "type": "object",
        "description": "by name, settings that replace the file's where scale is that name",
        "additionalProperties": {"type": "object"},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _takes(key: dict[str, Any], *forms: dict[str, Any]) -> None:
    """Replaces what the schema of a key says of its values, but not its description."""
    description = key["description"]
    key.clear()
    key.update(description=description, anyOf=list(forms))


def _component(kind: str, definitions: dict[str, Any], default: str = "") -> dict[str, Any]:
    """A bare name, or a mapping with name and parameters; the default's name may be left out."""
    modules = dict[str, ModuleType]()
    for name in catalogue.entries(kind):
        try:
            modules[name] = catalogue.load(kind, name)
        except UserError as error:
            note(f"{catalogue.singular(kind)} {name} is left out: {in_one_line(error)}")
    arms: list[dict[str, Any]] = [{"enum": list(modules)}]
    for name, module in modules.items():
        params = getattr(module, "Params", Nothing).model_json_schema(mode="validation")
        definitions.update(params.pop("$defs", {}))
        properties = {**params.get("properties", {}), "name": {"const": name}}
        arms.append(
            {
                "type": "object",
                "description": catalogue.summary(catalogue.find(kind, name)),
                "properties": properties,
                "required": [*(["name"] if name != default else []), *params.get("required", [])],
                "additionalProperties": False,
            }
        )
    return {"anyOf": arms}
