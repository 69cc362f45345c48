"""Generates lake/protocol/generated from thrift_idl: `python -m tools.generate_types [--check]`.

The IDL is parsed by thriftpy2 (a development dependency only), so no Thrift compiler is needed. What comes
out is small: one class per struct with typed, slotted attributes and the `thrift_spec` that Apache Thrift's C
accelerator reads, and one table of methods per service. An attribute that was not sent is None, whatever
default the IDL declares: what arrived and what did not stays visible, and a stored struct goes out as it came
in.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import thriftpy2
from thriftpy2.thrift import TType

ROOT = Path(__file__).resolve().parent.parent
IDL = ROOT / "thrift_idl"
TARGET = ROOT / "lake" / "protocol" / "generated"
_STRUCT = re.compile(r"\[(\w+), None\]")  # in the argument of a wire type
HEADER = '"""Generated from thrift_idl/{idl} by tools/generate_types.py. Do not edit."""\n'

SCALARS = {
    TType.BOOL: ("bool", 2, None),
    TType.BYTE: ("int", 3, None),
    TType.DOUBLE: ("float", 4, None),
    TType.I16: ("int", 6, None),
    TType.I32: ("int", 8, None),
    TType.I64: ("int", 10, None),
    TType.STRING: ("str", 11, "UTF8"),
    TType.BINARY: ("bytes", 11, "BINARY"),
}


def wire_type(ttype: int, arg: Any, *, hashable: bool = False) -> tuple[str, int, str]:
    """Python annotation, wire type id and type argument (as source text) of one field type.

    `hashable`: for what is a map's key or a set's item; a list is a tuple there.
    """
    if ttype in SCALARS:
        annotation, number, argument = SCALARS[ttype]
        return annotation, number, repr(argument)
    if ttype == TType.STRUCT:
        return arg.__name__, 12, f"[{arg.__name__}, None]"
    if ttype in (TType.LIST, TType.SET):
        inner = arg if isinstance(arg, tuple) else (arg, None)
        annotation, number, argument = wire_type(*inner, hashable=hashable or ttype == TType.SET)
        if ttype == TType.LIST:
            kind = f"tuple[{annotation}, ...]" if hashable else f"list[{annotation}]"
            return kind, 15, f"({number}, {argument}, {hashable})"
        return f"{'frozenset' if hashable else 'set'}[{annotation}]", 14, f"({number}, {argument}, {hashable})"
    if ttype == TType.MAP:
        key, value = ((side if isinstance(side, tuple) else (side, None)) for side in arg)
        key_annotation, key_number, key_argument = wire_type(*key, hashable=True)
        value_annotation, value_number, value_argument = wire_type(*value)
        argument = f"({key_number}, {key_argument}, {value_number}, {value_argument}, False)"
        return f"dict[{key_annotation}, {value_annotation}]", 13, argument
    raise ValueError(f"no wire type for {ttype}")


def parts(entry: tuple[Any, ...]) -> tuple[int, str, Any, bool]:
    """Unpacks thriftpy2's field entry: (type, name, required) or (type, name, argument, required)."""
    if len(entry) == 3:
        ttype, name, required = entry
        return ttype, name, None, required
    return entry  # type: ignore[return-value]


def field_lines(spec: dict[int, tuple[Any, ...]]) -> list[tuple[int, str, str, int, str, bool]]:
    rows = []
    for field_id in sorted(spec):
        ttype, name, arg, required = parts(spec[field_id])
        annotation, number, argument = wire_type(ttype, arg)
        rows.append((field_id, name, annotation, number, argument, bool(required)))
    return rows


def struct_source(cls: type, base: str) -> list[str]:
    rows = field_lines(cls.thrift_spec)
    names = [row[1] for row in rows]
    out = [f"class {cls.__name__}({base}):"]
    if not rows:
        return [*out, '    __slots__ = ("unknown",)', "    thrift_spec: ClassVar[Spec] = ()", ""]
    out.append(f"    __slots__ = ({', '.join(repr(name) for name in [*names, 'unknown'])})")
    required = [row[1] for row in rows if row[5]]
    if required:
        out.append(f"    required: ClassVar[tuple[str, ...]] = ({', '.join(map(repr, required))},)")
    out.append("    thrift_spec: ClassVar[Spec]")
    out.append("")
    arguments = ", ".join(f"{row[1]}: {row[2]} | None = None" for row in rows)
    out.append(f"    def __init__(self, {arguments}) -> None:")
    out += [f"        self.{name} = {name}" for name in names]
    out.append("")
    return out


def spec_source(rows: list[tuple[int, str, str, int, str, bool]]) -> str:
    by_id = {row[0]: row for row in rows}
    entries = []
    for field_id in range(max(by_id, default=-1) + 1):
        if field_id not in by_id:
            entries.append("None")
            continue
        _, name, _, number, argument, _ = by_id[field_id]
        entries.append(f"({field_id}, {name!r}, {number}, {argument})")
    return "f(" + ", ".join(entries) + ")"


def types_source(idl: str, module: Any) -> str:
    meta = module.__thrift_meta__
    out = [HEADER.format(idl=idl)]
    out.append("from __future__ import annotations\n\nfrom enum import IntEnum\nfrom typing import ClassVar\n")
    out.append("from lake.protocol.struct import ExceptionStruct, Spec, Struct, link")
    out.append("from lake.protocol.struct import fields as f")
    structs = [*meta["structs"], *meta["exceptions"]]
    used = {name for cls in structs for row in field_lines(cls.thrift_spec) for name in _STRUCT.findall(row[4])}
    for source, names in _homes(module, "", used).items():
        if source:
            out.append(f"from lake.protocol.generated.{source} import {', '.join(names)}")
    out.append("\n")
    for enum in meta["enums"]:
        out.append(f"class {enum.__name__}(IntEnum):")
        members = sorted(enum._NAMES_TO_VALUES.items(), key=lambda item: item[1])
        out += [f"    {name} = {value}" for name, value in members]
        out.append("\n")
    exceptions = {cls.__name__ for cls in meta["exceptions"]}
    for cls in [*meta["structs"], *meta["exceptions"]]:
        out += struct_source(cls, "ExceptionStruct" if cls.__name__ in exceptions else "Struct")
        out.append("")
    for cls in [*meta["structs"], *meta["exceptions"]]:
        if cls.thrift_spec:
            out.append(f"{cls.__name__}.thrift_spec = {spec_source(field_lines(cls.thrift_spec))}")
    names = [cls.__name__ for cls in [*meta["structs"], *meta["exceptions"]] if cls.thrift_spec]
    if names:
        out.append(
            "\nfor _cls in (\n" + "\n".join(f"    {name}," for name in names) + "\n):\n    link(_cls.thrift_spec)"
        )
    return "\n".join(out) + "\n"


def service_source(idl: str, module: Any, types: str) -> str:
    used: set[str] = set()
    lines = []
    for service in module.__thrift_meta__["services"]:
        own = list(vars(service)["thrift_services"])
        parent = service.__mro__[1]
        inherited = set(getattr(parent, "thrift_services", ()))
        for method in (name for name in own if name not in inherited):
            sides = []
            for side in ("args", "result"):
                cls = getattr(service, f"{method}_{side}")
                spec = {i: e for i, e in cls.thrift_spec.items() if parts(e)[0] != TType.VOID}
                rows = field_lines(spec)
                for row in rows:
                    used.update(_STRUCT.findall(row[4]))
                sides.append(spec_source(rows))
            oneway = getattr(getattr(service, f"{method}_result"), "oneway", False)
            lines.append(f"    m({method!r}, {sides[0]},\n      {sides[1]}{', oneway=True' if oneway else ''}),")
    out = [HEADER.format(idl=idl)]
    out.append("from lake.protocol.method import Method as m")
    out.append("from lake.protocol.struct import fields as f")
    for source, names in _homes(module, types, used).items():
        out.append(f"from lake.protocol.generated.{source} import (")
        out += [f"    {name}," for name in names]
        out.append(")")
    out.append("\nMETHODS: tuple[m, ...] = (")
    return "\n".join([*out, *lines, ")"]) + "\n"


def _homes(module: Any, types: str, used: set[str]) -> dict[str, list[str]]:
    """In which generated module each of some classes is: the service's own or that of an IDL it includes."""
    homes: dict[str, list[str]] = {}
    included = {
        cls.__name__: f"{Path(other.__thrift_file__).stem}_types"
        for other in module.__thrift_meta__["includes"]
        for cls in [*other.__thrift_meta__["structs"], *other.__thrift_meta__["exceptions"]]
    }
    own = {cls.__name__ for cls in [*module.__thrift_meta__["structs"], *module.__thrift_meta__["exceptions"]]}
    for name in sorted(used):
        homes.setdefault(types if name in own else included[name], []).append(name)
    return dict(sorted(homes.items()))


def generate(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    (target / "__init__.py").write_text('"""What tools/generate_types.py makes of thrift_idl."""\n')
    for path in sorted(IDL.glob("*.thrift")):
        name = path.stem
        module = thriftpy2.load(str(path), module_name=f"{name}_thrift")
        (target / f"{name}_types.py").write_text(types_source(path.name, module))
        (target / f"{name}_service.py").write_text(service_source(path.name, module, f"{name}_types"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="fail if the committed files are not what would be generated"
    )
    if not parser.parse_args().check:
        generate(TARGET)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        generate(Path(directory))
        stale = [p.name for p in sorted(Path(directory).iterdir()) if (TARGET / p.name).read_text() != p.read_text()]
    for name in stale:
        print(f"{TARGET.relative_to(ROOT) / name} is stale: run make generate", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
