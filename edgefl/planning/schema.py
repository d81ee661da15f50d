"""The JSON Schema of a scenario file, for editors."""

from types import ModuleType
from typing import Any

from edgefl.core import catalogue
from edgefl.core.components import params_of
from edgefl.core.errors import UserError, in_one_line
from edgefl.core.host import version
from edgefl.core.notes import note
from edgefl.core.scenario import Scenario
from edgefl.planning.carbon import Carbon


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a scenario, with all components found on this machine.

    A component whose file fails is named in a note and left out.
    """
    found = Scenario.model_json_schema(mode="validation")
    kinds = dict[str, str]()
    found = _referring(found, kinds)
    definitions = found["$defs"]
    # A fleet has it as plain data.
    carbon = Carbon.model_json_schema(mode="validation", ref_template="#/$defs/{model}")
    definitions |= {**carbon.pop("$defs"), "Carbon": carbon}
    definitions["Fleet"]["properties"]["carbon"]["anyOf"] = [{"$ref": "#/$defs/Carbon"}, {"type": "null"}]
    while left := [kind for kind in kinds if kind not in definitions]:
        for kind in left:
            definitions[kind] = {}  # of components that refer to their own kind
            definitions[kind] = _component(kind, definitions, kinds)
    profiles = {"enum": list(catalogue.entries("profiles"))}
    own = {"type": "object", "required": ["like"], "properties": {"like": profiles}}
    fleet = found["properties"]["fleet"]
    fleet.pop("oneOf", None)
    fleet["anyOf"] = [profiles, own, {"$ref": "#/$defs/Fleet"}]
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
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "$id": f"urn:edgefl:scenario:{version()}", **found}


def _referring(schema: Any, kinds: dict[str, str]) -> Any:
    """A schema that refers to its components' kinds; ``kinds`` takes their default names."""
    if isinstance(schema, list):
        return [_referring(one, kinds) for one in schema]
    if not isinstance(schema, dict):
        return schema
    given = {key: _referring(inner, kinds) for key, inner in schema.items()}
    if (kind := given.pop("component", None)) is not None:
        default = given.pop("default_name")
        kinds[kind] = kinds.get(kind) or default
        given["$ref"] = f"#/$defs/{kind}"
    return given


def _component(kind: str, definitions: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """A bare name, or a mapping with name and parameters; the default's name may be left out."""
    modules = dict[str, ModuleType]()
    for name in catalogue.entries(kind):
        try:
            modules[name] = catalogue.load(kind, name)
        except UserError as error:
            note(f"{catalogue.singular(kind)} {name} is left out: {in_one_line(error)}")
    arms: list[dict[str, Any]] = [{"enum": list(modules)}]
    for name, module in modules.items():
        params = _referring(params_of(kind, module).model_json_schema(mode="validation"), kinds)
        definitions.update(params.pop("$defs", {}))
        properties = {**params.get("properties", {}), "name": {"const": name}}
        arms.append(
            {
                "type": "object",
                "description": catalogue.summary(catalogue.find(kind, name)),
                "properties": properties,
                "required": [*(["name"] if name != kinds[kind] else []), *params.get("required", [])],
                "additionalProperties": False,
            }
        )
    return {"anyOf": arms}
