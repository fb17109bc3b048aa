"""The modules of a Rust crate, and the references between them.

Read from the text of ``src``: paths that begin with ``crate``, ``self``, ``super`` or a submodule, in
``use`` and elsewhere. A name counts as a reference to the module that defines it, regardless of
re-exports. So a module may declare its submodules and re-export their names, but a module and its submodule
must not use each other's definitions. Method calls are not paths and do not count, because a type's methods
may be in several files. Test code does not count either.
"""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|'(?:\\[^']*|[^'\\])'|(?P<code>[\w]+|.)""",
    re.DOTALL,
)
FOR_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*")
USE = re.compile(r"(?P<shared>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
DEFINED = re.compile(r"\b(?:struct|enum|union|trait|type|fn|const|static|macro_rules!)\s+(\w+)")
PATH = re.compile(r"(?<![\w:])[a-z_]\w*(?:::\w+)+")


def modules(src):
    """For each module, the modules whose definitions it names; a module is given by its path, a tuple."""
    texts = {}
    for file in src.rglob("*.rs"):
        parts = file.relative_to(src).with_suffix("").parts
        name = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        texts[name] = _without_tests(_code(file.read_text()))
    read = {name: _names(name, text, texts) for name, text in texts.items()}
    imports = {name: own for name, (own, _) in read.items()}
    defined = {name: set(DEFINED.findall(text)) for name, text in texts.items()}
    return {
        name: {_home(path, imports, defined) for path in named} - {name} for name, (_, named) in read.items()
    }


def _code(text):
    """The code without comments, and without string and character literals."""
    return "".join(found["code"] or " " for found in TOKEN.finditer(text))


def _without_tests(text):
    while found := FOR_TESTS.search(text):
        body = re.compile(r"[;{]").search(text, found.end())
        end = body.end()
        depth = int(body[0] == "{")
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[end:]
    return text


def _names(name, text, known):
    """The imports of a module by local name, and everything that it names: paths from the crate's root."""
    imports, named = {}, []
    rest = USE.sub(" ", text)
    for use in USE.finditer(text):
        for path, called in _paths(use["tree"]):
            full = _full(path, name, known)
            if full is None:
                continue
            # A module that only re-exports a name does not depend on it.
            if not use["shared"] or (called != "*" and re.search(rf"\b{called}\b", rest)):
                named.append(full)
            # Each glob gets its own key.
            imports[called if called != "*" else full] = full
    named += (full for path in PATH.findall(rest) if (full := _full(path, name, known)) is not None)
    return imports, named


def _paths(tree):
    """Each path of a ``use`` and its local name."""
    tree = tree.strip()
    if tree.endswith("}"):
        front, _, inner = tree[:-1].partition("{")
        for part in _parts(inner):
            for path, called in _paths(part):
                yield (front + path, front.split("::")[-2] if path == "self" else called)
        return
    path, _, called = tree.partition(" as ")
    yield path.strip(), called.strip() or path.strip().split("::")[-1]


def _parts(inner):
    depth, begin = 0, 0
    for i, sign in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and not depth:
            yield inner[begin:i]
            begin = i + 1
    if inner[begin:].strip():
        yield inner[begin:]


def _full(path, name, known):
    """A path from the crate's root; ``None`` if it leads out of the crate."""
    parts = tuple(re.sub(r"\s", "", path).removesuffix("::self").split("::"))
    if parts[0] == "crate":
        return parts[1:]
    if parts[0] in ("self", "super"):
        up = parts.count("super")
        return name[: len(name) - up] + parts[max(up, 1) :]
    return name + parts if (*name, parts[0]) in known else None


def _home(path, imports, defined, through=()):
    """The module that defines the item to which a path refers."""
    module = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in imports)
    rest = path[len(module) :]
    if not rest or (module, rest[0]) in through:
        return module
    target = imports[module].get(rest[0])
    if target is None and rest[0] not in defined[module]:
        globs = (full[:-1] for full in imports[module].values() if full[-1] == "*")
        target = next(((*of, rest[0]) for of in globs if rest[0] in defined.get(of, ())), None)
    if target is None:
        return module
    return _home(target + rest[1:], imports, defined, (*through, (module, rest[0])))
