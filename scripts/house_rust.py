"""The Rust files of a crate: their code, their modules, and which file uses which name of another.

The docstring of scripts/house.py defines the dependencies.
"""

import re
from bisect import bisect_right
from collections import defaultdict, deque
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|\bb?r(?P<hashes>#*)".*?"(?P=hashes)'
    r'|b?"(?:\\.|[^"\\])*"'
    r"|b?'(?:\\[^\n][^'\n]*|[^\\'\n])'",
    re.S,
)
TEST_ONLY = re.compile(r"#\[cfg\((?:test\)|all\(test\b)[^\]]*\]?")
OPEN, CLOSE = "([{", ")]}"
FUNCTION_START = re.compile(r"\bfn\s+(\w+)")
MODULE_BLOCK = re.compile(r"\bmod\s+(\w+)\s*\{")
MODULE_FILE = re.compile(r"\bmod\s+(\w+)\s*;")
DEFINITION = re.compile(r"\b(?:struct|enum|trait|type|fn|const|static|union)\s+(?:mut\s+)?(\w+)|macro_rules!\s*(\w+)")
PUBLIC_TYPE = re.compile(r"\bpub\s+(?:unsafe\s+)?(?:struct|enum|trait|type|union)\s+(\w+)")
USE = re.compile(r"(?P<public>\bpub(?:\s*\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
PATH = re.compile(r"(?<![\w:.$])(?:r#)?([A-Za-z_]\w*)((?:\s*::\s*(?:r#)?\w+)+)")

Module = tuple[str, ...]


class Place(NamedTuple):
    """A line of a file, and the text of what was found there."""

    path: Path
    line: int
    text: str


class Import(NamedTuple):
    """One name that a `use` brings in; `name` is "*" for all of a module."""

    name: str
    path: tuple[str, ...]
    public: bool
    position: int


class Source:
    """A Rust file: its code without comments, strings and tests."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.starts = [0] + [found.end() for found in re.finditer("\n", text)]
        self.all_code = NOT_CODE.sub(lambda found: blank(found.group()), text)

    def line(self, position: int) -> int:
        """The number of the line at a position."""
        return bisect_right(self.starts, position)

    def brackets(self, code: str) -> dict[int, int]:
        """Where each opening bracket is closed."""
        pairs, stack = {}, []
        for found in re.finditer(r"[()\[\]{}]", code):
            if found.group() in OPEN:
                stack.append(found.start())
            elif stack:
                pairs[stack.pop()] = found.start()
        return pairs

    def end_of_item(self, code: str, pairs: dict[int, int], position: int) -> tuple[int, bool]:
        """The end of the item that begins at a position, and whether it has a body."""
        while found := re.compile(r"[(\[{;]").search(code, position):
            if found.group() == ";":
                return found.start(), False
            end = pairs.get(found.start(), len(code) - 1)
            if found.group() == "{":
                return end, True
            position = end + 1
        return len(code) - 1, False

    @cached_property
    def code(self) -> str:
        """The code without what is compiled for tests alone."""
        code = self.all_code
        if "cfg(" not in code:
            return code
        pairs = self.brackets(code)
        for found in list(TEST_ONLY.finditer(code)):
            end, _ = self.end_of_item(code, pairs, found.end())
            code = code[: found.start()] + blank(code[found.start() : end + 1]) + code[end + 1 :]
        return code

    def test_modules(self) -> set[str]:
        """The modules with files of their own that are compiled for tests alone."""
        hidden = MODULE_FILE.findall(self.all_code)
        return set(hidden) - set(MODULE_FILE.findall(self.code))

    def functions(self) -> list[tuple[str, int, int]]:
        """Name, first line and number of lines of every function with a body."""
        pairs = self.brackets(self.all_code)
        found = []
        for start in FUNCTION_START.finditer(self.all_code):
            end, has_body = self.end_of_item(self.all_code, pairs, start.end())
            if has_body:
                first = self.line(start.start())
                found.append((start.group(1), first, self.line(end) - first + 1))
        return found

    def blocks(self, file_module: Module) -> list[tuple[int, int, Module]]:
        """The modules that are written out in the file, outer ones first."""
        pairs = self.brackets(self.code)
        blocks: list[tuple[int, int, Module]] = [(0, len(self.code), file_module)]
        for found in MODULE_BLOCK.finditer(self.code):
            start = found.end() - 1
            outer = next(module for a, b, module in reversed(blocks) if a <= start < b)
            end = pairs.get(start, len(self.code))
            blocks.append((start, end, (*outer, found.group(1))))
        return blocks


def blank(text: str) -> str:
    """As many spaces, with the ends of lines in their places."""
    return re.sub(r"[^\n]", " ", text)


def use_tree(tree: str, prefix: tuple[str, ...] = ()) -> list[tuple[str, tuple[str, ...]]]:
    """The names that a `use` brings in, each with its path."""
    tree = tree.strip()
    if tree.startswith("{"):
        return [one for part in split(tree[1:-1]) for one in use_tree(part, prefix)]
    found = re.match(r"(?:::)?\s*(?:r#)?([\w*]*)\s*(.*)", tree, re.S)
    head, rest = found.groups() if found else ("", "")
    if rest.startswith("::"):
        return use_tree(rest[2:], (*prefix, head))
    path = prefix if head == "self" and prefix else (*prefix, head)
    alias = re.match(r"as\s+(\w+)", rest)
    return [(alias.group(1) if alias else path[-1], path)]


def split(text: str) -> list[str]:
    """The parts between the commas that stand in no braces."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [part for part in (*parts, text[start:]) if part.strip()]


class Edge(NamedTuple):
    """One file uses a name that another one defines."""

    source: Path
    target: Path
    name: str
    line: int


class Crate:
    """The library of one crate: its modules, its names and which file uses which."""

    def __init__(self, name: str, sources: list[Source]) -> None:
        self.name = name
        self.root = Path("crates", name, "src")
        self.files: dict[Module, Source] = {}
        for source in sources:
            parts = source.path.relative_to(self.root).with_suffix("").parts
            if parts != ("main",) and parts[0] != "bin":
                self.files[() if parts == ("lib",) else strip_mod(parts)] = source
        self.drop_tests()
        self.blocks = {module: source.blocks(module) for module, source in self.files.items()}
        self.modules = {inner: self.files[module] for module, blocks in self.blocks.items() for _, _, inner in blocks}
        self.imports: dict[Module, list[Import]] = defaultdict(list)
        self.defined: dict[Module, set[str]] = defaultdict(set)
        self.uses: dict[Path, list[tuple[int, int]]] = defaultdict(list)
        for module in self.files:
            self.read(module)

    def drop_tests(self) -> None:
        tests = [(*module, name) for module, source in self.files.items() for name in source.test_modules()]
        for test in tests:
            for module in [one for one in self.files if one[: len(test)] == test]:
                del self.files[module]

    def module_at(self, file_module: Module, position: int) -> Module:
        blocks = self.blocks[file_module]
        return next(module for a, b, module in reversed(blocks) if a <= position < b)

    def read(self, file_module: Module) -> None:
        source = self.files[file_module]
        for found in USE.finditer(source.code):
            module = self.module_at(file_module, found.start())
            self.uses[source.path].append(found.span())
            for name, path in use_tree(found["tree"]):
                public = found["public"] is not None
                self.imports[module].append(Import(name, path, public, found.start()))
        for found in DEFINITION.finditer(source.code):
            module = self.module_at(file_module, found.start())
            self.defined[module].add(found.group(1) or found.group(2))

    def absolute(self, module: Module, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """The path from the crate's root; nothing if it leads out of the crate."""
        match path[0]:
            case "crate":
                return path[1:]
            case "self":
                return module + path[1:]
            case "super":
                while path and path[0] == "super":
                    module, path = module[:-1], path[1:]
                return module + path
        if (*module, path[0]) in self.modules:
            return module + path
        for one in self.imports[module]:
            if one.name == path[0] and one.path != path[: len(one.path)]:
                start = self.absolute(module, one.path)
                return None if start is None else start + path[1:]
        return None

    def definition(self, path: tuple[str, ...], seen: frozenset[tuple[str, ...]] = frozenset()) -> tuple[Module, str] | None:
        """The module that defines what an absolute path names, and the name; "" is the module."""
        if path in seen:
            return None
        seen |= {path}
        module: Module = ()
        for depth, name in enumerate(path):
            if (*module, name) in self.modules:
                module = (*module, name)
                continue
            rest = path[depth + 1 :]
            for one in self.imports[module]:
                if one.name == name and (start := self.absolute(module, one.path)) is not None:
                    return self.definition(start + rest, seen)
            if name in self.defined[module]:
                return module, name
            for one in self.imports[module]:
                if one.name == "*" and (start := self.absolute(module, one.path[:-1])) is not None:
                    found = self.definition((*start, name, *rest), seen)
                    if found and found[1] in self.defined[found[0]]:
                        return found
            return module, name
        return module, ""

    def paths(self, file_module: Module) -> list[tuple[tuple[str, ...], int]]:
        """Every path in the file that may lead to another one: absolute, with its position."""
        source = self.files[file_module]
        spans = self.uses[source.path]
        found = []
        for _, _, module in self.blocks[file_module]:
            for one in self.imports[module]:
                path = one.path[:-1] if one.name == "*" else one.path
                start = self.absolute(module, path) if path else None
                if start is None or (one.public and not self.is_used(source, one)):
                    continue
                found.append((start, one.position))
        for match in PATH.finditer(source.code):
            if any(a <= match.start() < b for a, b in spans):
                continue
            path = (match.group(1), *re.findall(r"\w+", match.group(2).replace("r#", "")))
            module = self.module_at(file_module, match.start())
            is_own = path[0] in ("crate", "self", "super") or path[0][0].islower()
            if is_own and (start := self.absolute(module, path)) is not None:
                found.append((start, match.start()))
        return found

    def is_used(self, source: Source, one: Import) -> bool:
        """Whether a file uses a name that it re-exports."""
        # A module and a method may have the name of a function: `name::` and `.name`.
        pattern = rf"(?<!mod )(?<!\.)\b{re.escape(one.name)}\b(?!\s*::\s*[a-z])"
        return one.name != "*" and any(
            not any(a <= match.start() < b for a, b in self.uses[source.path]) for match in re.finditer(pattern, source.code)
        )

    @cached_property
    def edges(self) -> list[Edge]:
        """Which file uses which."""
        edges = {}
        for module, source in self.files.items():
            for path, position in self.paths(module):
                found = self.definition(path)
                if found is None or (found[1] == "" and found[0] != ()):
                    continue  # A module by itself: the paths that go on from it count.
                target = self.modules[found[0]].path
                if target != source.path:
                    name = found[1] or "crate"
                    edge = Edge(source.path, target, name, source.line(position))
                    edges.setdefault((edge.source, target), edge)
        return list(edges.values())

    def root_imports(self) -> list[Place]:
        """Paths to what lib.rs re-exports."""
        reexported = {one.name for one in self.imports[()]}
        places = set()
        for module, source in self.files.items():
            if module == ():
                continue
            for path, position in self.paths(module):
                if path and path[0] in reexported and (path[0],) not in self.modules:
                    defined = self.definition(path[:1])
                    where = "::".join(("crate", *defined[0])) if defined else "its module"
                    text = f"crate::{path[0]} is defined in {where}"
                    places.add(Place(source.path, source.line(position), text))
        return sorted(places)

    def circles(self) -> list[Place]:
        """Sets of files of which each can be reached from each."""
        graph = defaultdict(dict)
        for edge in self.edges:
            graph[edge.source][edge.target] = edge
        places = []
        for files in components(graph):
            inner = [edge for edge in self.edges if edge.source in files and edge.target in files]
            names = ", ".join(str(one.relative_to(self.root)) for one in sorted(files))
            text = f"{len(files)} files in a circle: {names}" + "".join(
                f"\n    {edge.source}:{edge.line}: uses {edge.name} of {edge.target.relative_to(self.root)}"
                for edge in sorted(inner)
            )
            first = min(inner)
            places.append(Place(first.source, first.line, text))
        return places

    def arrows(self, allowed: dict[str, set[str]]) -> list[Place]:
        """Uses from folder to folder that the table does not allow."""
        places = []
        for edge in self.edges:
            source, target = (one.relative_to(self.root).with_suffix("").parts[0] for one in (edge.source, edge.target))
            if source not in ("lib", target) and target not in allowed.get(source, set()):
                text = f"{source} may not use {target} ({edge.name})"
                places.append(Place(edge.source, edge.line, text))
        return sorted(places)

    def public_types(self) -> list[Place]:
        """The names of the public types, each where it is defined."""
        return [
            Place(source.path, source.line(found.start()), found.group(1))
            for source in self.files.values()
            for found in PUBLIC_TYPE.finditer(source.code)
        ]


def strip_mod(parts: Module) -> Module:
    return parts[:-1] if parts[-1] == "mod" else parts


def components(graph: dict[Path, dict[Path, Edge]]) -> list[set[Path]]:
    """The strongly connected components with more than one file."""

    def reach(start: Path, step: dict[Path, set[Path]]) -> set[Path]:
        seen, todo = {start}, deque([start])
        while todo:
            for one in step[todo.popleft()] - seen:
                seen.add(one)
                todo.append(one)
        return seen

    forward, backward = defaultdict(set), defaultdict(set)
    for source, targets in graph.items():
        for target in targets:
            forward[source].add(target)
            backward[target].add(source)
    found: list[set[Path]] = []
    for start in sorted(graph):
        if not any(start in one for one in found):
            both = reach(start, forward) & reach(start, backward)
            if len(both) > 1:
                found.append(both)
    return found
