"""Mutation check of what the figures rest on: the verdict parser, the counting, the statistics, the draws, the mention check.

    python tests/mutation.py [MODULE…] [--jobs N]

Each mutant is one small change of one module (a comparison, a constant, a condition, a part of a pattern, …), in memory alone:
the module's tests run against it in a process of their own and should fail. A mutant that no test can tell from the original
is listed in `tests/data/equivalent_mutants.csv` with the reason. Exits with 1 when another one survives or an entry is stale.
"""

import argparse
import ast
import csv
import importlib
import os
import re
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "curate_inspect"
READING = "reads or finds_no_verdict or factor_only or read_rightly or read_quickly"
EXAMPLES = "test_agreement or changed_byte or any_examples or judge_agreement"
MODULES = {
    "verdicts": ("test_judge.py", "test_judge_corpus.py", "-k", READING),
    "metrics": ("test_metrics.py",),
    "report/counting": ("test_report_counting.py",),
    "agreement": ("test_agreement.py", "test_bad_input.py", "test_paper.py", "-k", EXAMPLES),
    "distractors": ("test_distractors.py",),
    "mention": ("test_mention.py", "test_judge_corpus.py", "-k", "mention and not invisible and not raises"),
}
EQUIVALENT = TESTS / "data" / "equivalent_mutants.csv"
SECONDS = 40  # of computing; an endless loop is a caught mutant
OPTIONS = "-x -o addopts= -p no:cacheprovider -p _hypothesis_pytestplugin --hypothesis-seed=0"

SWAPPED: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,), ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
# That something is raised or told is checked, not what it says; annotations and decorators compute nothing.
SKIPPED = {"returns", "annotation", "decorator_list", "exc"}


def changed(node: ast.AST, **fields: Any) -> ast.AST:
    """The node with other fields."""
    new = copy(node)
    vars(new).update(fields)
    return new


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What a mutant may have in place of a node."""
    match node:
        case ast.Compare(ops=[op]):
            yield from (changed(node, ops=[other()]) for other in SWAPPED[type(op)])
        case ast.BinOp(op=op):
            yield from (changed(node, op=other()) for other in SWAPPED.get(type(op), ()))
        case ast.BoolOp(op=op, values=values):
            yield from (changed(node, op=other()) for other in SWAPPED[type(op)])
            yield from (
                values if len(values) == 2 else (changed(node, values=[v for v in values if v is not out]) for out in values)
            )
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (ast.Constant(value + step) for step in (1, -1))
        case ast.Constant(value=str(value)):
            yield from texts(value)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Slice(lower=lower, upper=upper):
            yield from [changed(node, lower=None)] if lower else []
            yield from [changed(node, upper=None)] if upper else []
        case ast.If(test=test) if not isinstance(test, ast.Compare):
            yield changed(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.IfExp(body=body, orelse=orelse):
            yield changed(node, body=orelse, orelse=body)
        case ast.comprehension(ifs=[_, *_]):
            yield changed(node, ifs=[])
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.Call(func=ast.Attribute(value=value, attr="strip" | "rstrip" | "lower")):
            yield value


def texts(text: str) -> Iterator[ast.Constant]:
    """The text with more before it, and without each alternative of a pattern that opens and closes nothing."""
    yield ast.Constant("XX" + text)
    parts = re.split(r"(?<!\\)\|", text)
    for i, part in enumerate(parts if len(parts) > 1 else []):
        if not re.search(r"(?<!\\)[()\[\]]", part):
            yield ast.Constant("|".join(parts[:i] + parts[i + 1 :]), kind=f"without {part}")


def mutants(tree: ast.Module) -> Iterator[tuple[str, CodeType]]:
    """Every mutant of a module: where and what it is, and its code."""
    seen: Counter[str] = Counter()

    def visit(node: ast.AST, where: str) -> Iterator[tuple[str, CodeType]]:
        where = getattr(node, "name", None) or where
        for field, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            for i, child in enumerate(children):
                docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                told = isinstance(child, ast.Call) and getattr(child.func, "id", "").lower() == "fault"
                if field in SKIPPED or docstring or told or not isinstance(child, ast.AST):
                    continue
                for new in replacements(child):
                    put = value.__setitem__ if isinstance(value, list) else lambda _, new, f=field: setattr(node, f, new)
                    put(i, ast.fix_missing_locations(ast.copy_location(new, child)))
                    name = f"{where}: {short(child)} -> {short(new)}"
                    seen[name] += 1
                    yield name + (f" #{seen[name]}" if seen[name] > 1 else ""), compile(tree, "mutant", "exec")
                    put(i, child)
                yield from visit(child, where)

    yield from visit(tree, "module")


def short(node: ast.AST) -> str:
    """A node on one line, its middle left out where it is long."""
    text = getattr(node, "kind", None) or " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:55]} … {text[-30:]} ({len(text)})"


def survives(module: str, code: CodeType) -> bool:
    """Whether a module's tests pass with other code in its place; for a process of its own, which is of no more use then."""
    name, path = f"curate_inspect.{module.replace('/', '.')}", str(PACKAGE / f"{module}.py")

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            return code

    class Finder(PathFinder):
        @classmethod
        def find_spec(cls, fullname: str, *args: Any) -> ModuleSpec | None:
            return spec_from_file_location(name, path, loader=Loader(name, path)) if fullname == name else None

    sys.meta_path.insert(0, Finder)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, tempfile.TemporaryDirectory() as folder:
        os.dup2(nowhere.fileno(), 1), os.dup2(nowhere.fileno(), 2)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        os.chdir(TESTS)
        return pytest.main([*OPTIONS.split(), f"--basetemp={folder}/pytest", *MODULES[module]]) == 0


def in_processes(work: Iterator[tuple[str, Callable[[], bool]]], jobs: int) -> Iterator[tuple[str, bool]]:
    """The names of some work with what came of it, each in a process of its own; False for one that ends otherwise."""
    running: dict[int, str] = {}
    while (task := next(work, None)) or running:
        if running and (not task or len(running) == jobs):
            pid, status = os.wait()
            yield running.pop(pid), status == 0
        if task and not (pid := os.fork()):
            os._exit(0 if task[1]() else 1)
        if task:
            running[pid] = task[0]


def main() -> int:
    """Check the modules that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"any of {', '.join(MODULES)}; all by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    # What the package and its tests import is imported once, here, and inherited by every process; the package itself is not.
    for library in ("curate_inspect._registry", "curate_inspect.report", "hypothesis", "scipy.optimize", "sklearn.metrics"):
        importlib.import_module(library)
    for loaded in [loaded for loaded in sys.modules if loaded.startswith("curate_inspect")]:
        del sys.modules[loaded]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        equivalent = [(row["module"], row["mutant"]) for row in csv.DictReader(file)]
    failed = False
    for module in given.modules or MODULES:
        tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
        whole = [("unchanged", compile(tree, module, "exec"))]
        work = ((name, partial(survives, module, code)) for name, code in chain(whole, mutants(tree)))
        survivors = {name for name, survived in in_processes(work, given.jobs) if survived}
        if "unchanged" not in survivors:
            sys.exit(f"{module}: its tests fail as it is")
        known = {name for of, name in equivalent if of == module} | {"unchanged"}
        count = sum(1 for _ in mutants(tree))
        print(
            f"{module}: {count} mutants, {count + 1 - len(survivors)} caught, {len(survivors & known) - 1} equivalent", flush=True
        )
        for name in sorted(survivors - known):
            print(f"  survives: {name}")
        for name in sorted(known - survivors):
            print(f"  is caught, or no mutant any more: {name}")
        failed |= survivors != known
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
