"""One function of a task, rewritten for the compiler: names resolved, the rest refused.

Constants are put in place, NumPy's and MuJoCo's functions become those of
``vocabulary``, ``super().step(…)`` and ``self.helper(…)`` become calls of functions.
Line numbers stay the user's.
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import linecache
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfastenv.errors import TaskCodeError
from pyfastenv.tasks.frontend import draws
from pyfastenv.tasks.frontend import vocabulary as words
from pyfastenv.tasks.frontend.definitions import Function
from pyfastenv.tasks.frontend.gathered_terms import TermsError, unfold_terms
from pyfastenv.tasks.frontend.targets import Targets
from pyfastenv.tasks.frontend.unwritten import check_unwritten
from pyfastenv.tasks.language import rewards
from pyfastenv.tasks.language.fields import Memory
from pyfastenv.tasks.language.networks import load_mlp
from pyfastenv.tasks.language.places import show_place
from pyfastenv.tasks.language.spelling import did_you_mean
from pyfastenv.tasks.language.task import SETTINGS, Task

_BUILTIN_NAMES = frozenset(dir(builtins))


class Rewriter(ast.NodeTransformer):
    """Rewrites one function of a task in place.

    Args:
        task: The task.
        add: Rewrites a function that this one calls; returns the name by which it is called, None
            if it is one that has called this one.
        function: As the class has it.
        result: Its definition, which is rewritten.
    """

    def __init__(
        self,
        task: Task,
        add: Callable[[Any], str | None],
        function: types.FunctionType,
        result: Function,
    ):
        self._task = task
        self._add = add
        self._function = function
        self._result = result
        self._terms = rewards.weights_of(function)
        classes = type(task).__mro__
        self._is_step = any(vars(each).get("step") is function for each in classes)
        function = written(function)
        self._defaults = function.__defaults__ or ()
        code = function.__code__
        self._locals = {*code.co_varnames, *code.co_cellvars}
        closure = inspect.getclosurevars(function)
        self._outer = {**function.__globals__, **closure.nonlocals}
        self._self = code.co_varnames[0] if "self" in code.co_varnames[:1] else None
        self._indices: set[int] = set()  # nodes that stand in brackets
        self._targets = Targets(task, result.tree, self._self)

    def run(self) -> None:
        arguments = self._result.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
            self._refuse(self._result.tree, "*args, **kwargs and keyword-only arguments")
        if self._terms:
            try:
                self._locals |= unfold_terms(self._result.tree)
            except TermsError as error:
                self._refuse(error.node, error.what, error.instead)
        check = self._call_name("numpy:written")
        if not (added := check_unwritten(self._result.tree, check)):
            del self._result.calls[check.id]
        self._locals |= added
        self.generic_visit(ast.Module(body := self._result.tree.body, []))
        self._result.tree.body = body
        defaults = zip(arguments.defaults, self._defaults, strict=True)
        arguments.defaults = [self._default(node, value) for node, value in defaults]
        ast.fix_missing_locations(self._result.tree)

    # ---- errors ------------------------------------------------------------------------------

    def _refuse(self, node: ast.AST, what: str, instead: str = "") -> Any:
        line = getattr(node, "lineno", self._result.tree.lineno)
        where = show_place(self._result.filename, line)
        source = linecache.getline(self._result.filename, line).strip()
        sentence = f"{what} cannot be compiled" if not instead else f"{what}: {instead}"
        raise TaskCodeError(
            f"{where}, in {self._function.__name__}: {sentence}\n    {source}\n"
            f"(in plain Python it runs: pyfastenv.debug)"
        )

    # ---- names -------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id not in self._locals:
            return self._resolve(node, [])
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """Lists among the constants are tuples; as an index NumPy has them mean something else."""
        index = node.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        self._indices |= {id(part) for part in parts}
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        chain: list[ast.Attribute] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            chain.insert(0, root)
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self._locals:
            return self._resolve(root, chain)
        if isinstance(root, ast.Name) and root.id == self._self:
            self._check_self(chain[0])
        if _is_name(root, "rng") and chain[0].attr not in words.GENERATOR:
            known = ", ".join(f"rng.{name}" for name in words.GENERATOR)
            self._refuse(node, f"rng.{chain[0].attr}", f"compiled there are {known}")
        node.value = self.visit(node.value)
        return node

    def _check_self(self, node: ast.Attribute) -> None:
        task = self._task
        name = node.attr
        if isinstance(node.ctx, ast.Store):
            own = task._fields.get(name)
            if isinstance(own, Memory) and own.size is None:
                return
            what = (
                f"a vector is written as self.{name}[:] = …"
                if isinstance(own, Memory)
                else f"only what is declared with memory() can be set; in the class: "
                f"{name} = pyfastenv.memory()"
            )
            self._refuse(node, f"self.{name}", what)
        known = {*task.params, *task._fields, "model", "simulate", "init_qpos", "init_qvel"}
        if name in known or callable(getattr(type(task), name, None)):
            return
        if not hasattr(task, name):
            near = did_you_mean(name, known | {*dir(type(task))})
            self._refuse(node, f"self.{name}", f"there is no such attribute{near}")
        if isinstance(inspect.getattr_static(type(task), name, None), property):
            self._refuse(node, f"self.{name}", "a property is not compiled; make it a method")
        value = getattr(task, name)
        what = f"it is {_a(type(value).__name__)}; methods read numbers, and arrays of them"
        if name.startswith("_"):
            what = "names that begin with _ are no parameters, which methods read"
        elif name in SETTINGS:
            what = "it is a setting; methods read parameters, which have names of their own"
        self._refuse(node, f"self.{name}", f"{what} (compute those in setup)")

    def _resolve(self, root: ast.Name, chain: list[ast.Attribute]) -> Any:
        """A name of the user's module (or a closure), and attributes of it."""
        name = root.id
        if name not in self._outer:
            if name not in _BUILTIN_NAMES:
                self._refuse(root, f"the name {name!r}", "it is not defined")
            if name not in words.BUILTINS:
                hints = {
                    "print": "there is no interpreter in the pool's threads; it works in "
                    "pyfastenv.debug",
                    "sum": "write np.sum, whose order of additions is known",
                    "round": "write np.rint",
                    "reversed": "write x[::-1], or range(n - 1, -1, -1)",
                }
                self._refuse(root, f"{name}()", hints.get(name, ""))
            # dtypes, too; numba's float leaves float32 as it is, its abs knows no arrays
            own = {"float": "float64", "int": "int64", "bool": "bool_", "abs": "absolute"}.get(name)
            return self._call_name(f"plain:{own}") if own else root
        value, used = self._outer[name], 0
        while used < len(chain) and isinstance(value, types.ModuleType | type):
            attribute = chain[used].attr
            if not hasattr(value, attribute):
                self._refuse(chain[used], f"{_name_of(value)} has no {attribute!r}", "")
            value = getattr(value, attribute)
            used += 1
        replacement = self._constant(chain[used - 1] if used else root, name, value)
        ast.copy_location(replacement, root)
        for node in chain[used:]:
            replacement = ast.copy_location(
                ast.Attribute(value=replacement, attr=node.attr, ctx=node.ctx), node
            )
        return replacement

    def _constant(self, node: ast.expr, name: str, value: Any) -> Any:
        dotted = ast.unparse(node)
        target = words.function_of(value)
        if target is not None:
            return self._call_name(target)
        if value is load_mlp:
            self._refuse(node, dotted, f"it belongs into setup(self): self.network = {dotted}(…)")
        if isinstance(value, types.FunctionType):
            return self._helper(node, value)
        if isinstance(value, type) and issubclass(value, Exception):
            return ast.Name(
                value.__name__ if value.__name__ in words.BUILTINS else "RuntimeError", ast.Load()
            )
        if type(value).__module__.startswith("mujoco") and hasattr(value, "__int__"):
            value = int(value)
        kind = "list" if isinstance(value, list) else "constant"
        if isinstance(value, list) and id(node) in self._indices:
            value = np.array(value)
        value = self._numbers(node, value)
        if value is None or isinstance(value, bool | int | float):  # np.newaxis is None
            return ast.Constant(value)
        if (isinstance(value, np.ndarray) and value.dtype.kind in "bif") or isinstance(
            value, tuple
        ):
            injected = f"{kind}_{len(self._result.constants)}"
            self._result.constants[injected] = value
            return ast.Name(injected, ast.Load())
        if draws.is_foreign(value):
            self._refuse(node, dotted, draws.instead(value, self._function.__name__))
        module = getattr(value, "__module__", None) or ""
        if callable(value) and module.startswith("mujoco"):
            known = ", ".join(sorted(words.MUJOCO.values()))
            self._refuse(node, dotted, f"of MuJoCo's functions there are {known}")
        if (callable(value) and module.startswith("numpy")) or isinstance(value, np.ufunc):
            return self._refuse(
                node, dotted, "it is not known to give NumPy's bits when compiled; write the loop"
            )
        return self._refuse(
            node,
            dotted,
            f"it is {_a(type(value).__name__)}; the constants of a task are numbers, "
            f"tuples and arrays of them",
        )

    def _numbers(self, node: ast.expr, value: Any) -> Any:
        """A number of Python's, a nested tuple of them, or the value itself."""
        if isinstance(value, list | tuple):
            items = tuple(self._numbers(node, item) for item in value)
            return items if all(isinstance(i, int | float | tuple) for i in items) else value
        if isinstance(value, np.float64 | np.int64):
            return value.item()
        if isinstance(value, enum.Enum) and isinstance(value, int | float):
            return value.value
        if isinstance(value, np.number | np.bool_):
            what = f"np.{type(value).__name__} is no plain number"
            self._refuse(node, ast.unparse(node), f"{what}: write float(…), int(…) or bool(…)")
        return value

    def _default(self, node: ast.expr, value: Any) -> Any:
        """A default argument, which has been evaluated where the function was defined."""
        if isinstance(value, types.FunctionType):
            self._refuse(node, ast.unparse(node), "a function is no default argument here")
        is_text = isinstance(value, str)
        default = ast.Constant(value) if is_text else self._constant(node, "", value)
        return ast.copy_location(default, node)

    def _helper(self, node: ast.AST, function: Any) -> ast.Name:
        if (name := self._add(function)) is None:
            self._refuse(node, "a function that calls itself cannot be compiled", "write the loop")
        return self._call_name(f"helper:{name}")

    def _call_name(self, target: str) -> ast.Name:
        name = "call_" + target.replace(":", "_").replace(".", "_")
        self._result.calls[name] = target
        return ast.Name(name, ast.Load())

    # ---- calls -------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(function, ast.Attribute):
            owner = function.value
            if _is_super(owner):
                return self._method(
                    node, function, _next_method(self._task, self._function, function.attr)
                )
            if _is_name(owner, self._self) and function.attr != "simulate":
                method = getattr(type(self._task), function.attr, None)
                static = inspect.getattr_static(type(self._task), function.attr, None)
                if isinstance(static, staticmethod):
                    node.func = self._helper(function, static.__func__)
                    return self._visit_arguments(node)
                if isinstance(static, classmethod):
                    self._refuse(
                        node,
                        f"{ast.unparse(function)}()",
                        "a class method is not compiled; make it a method",
                    )
                if isinstance(method, types.FunctionType):
                    return self._method(node, function, method)
            if function.attr in words.REFUSED_METHODS and not self._is_outer(owner):
                reason = "it is not known to give NumPy's bits; write the loop"
                self._refuse(node, f".{function.attr}()", reason)
            if function.attr in words.ARRAY_METHODS and not self._is_outer(owner):
                name = self._call_name("numpy:" + words.ARRAY_METHODS[function.attr])
                node.func = ast.copy_location(name, function)
                node.args.insert(0, owner)
                return self._visit_arguments(node)
        node.func = self.visit(function)
        kind, _, called = self._result.calls.get(getattr(node.func, "id", ""), "").partition(":")
        ufunc = getattr(np, called, None) if kind in ("plain", "numpy") else None
        if isinstance(ufunc, np.ufunc) and len(node.args) > ufunc.nin:
            what = f"{ast.unparse(function)} with an array to write into"
            self._refuse(node, what, "write x[:] = … of what it returns")
        if _is_name(function, "int") and _is_name(node.func, "call_plain_int64"):
            node.func = self._call_name("numpy:int")  # which numba's is not for NaN
        return self._visit_arguments(node)

    def _visit_arguments(self, node: ast.Call) -> ast.Call:
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def _method(self, node: ast.Call, at: ast.Attribute, method: Any) -> ast.Call:
        if not isinstance(method, types.FunctionType):
            self._refuse(at, f"no method {at.attr!r}", "there is none")
        node.func = ast.copy_location(self._helper(at, method), at)
        node.args.insert(0, ast.copy_location(ast.Name(self._self or "self", ast.Load()), at))
        return self._visit_arguments(node)

    def _is_outer(self, node: ast.expr) -> bool:
        """Whether an expression begins at a module, such as np.linalg."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return (
            isinstance(node, ast.Name)
            and node.id not in self._locals
            and isinstance(self._outer.get(node.id), types.ModuleType)
        )

    # ---- operators ---------------------------------------------------------------------------

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        target = {ast.Pow: "numpy:operator_pow", ast.MatMult: "numpy:matmul"}.get(type(node.op))
        if target is None:
            return node
        call = ast.Call(self._call_name(target), [node.left, node.right], [])
        return ast.copy_location(call, node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        for i, op in enumerate(node.ops):
            nones = (isinstance(s, ast.Constant) and s.value is None for s in sides[i : i + 2])
            if isinstance(op, ast.Is | ast.IsNot) and not any(nones):
                what = "is, which asks for the same object"
                self._refuse(node, what, "write ==, or the condition alone for is True")
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if isinstance(node.op, ast.Pow | ast.MatMult):
            self._refuse(node, "**= and @=", "write x = x ** y")
        self._check_target(node.target, in_place=True)
        is_new = isinstance(node.value, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant)
        self.generic_visit(node)
        if not is_new:  # it may be part of the target, which numba would read as it writes
            copied = ast.Call(self._call_name("numpy:copied"), [node.value], [])
            node.value = ast.copy_location(copied, node.value)
        return node

    # ---- statements --------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> Any:
        for target in node.targets:
            self._check_target(target)
            if len(node.targets) > 1 and isinstance(target, ast.Tuple | ast.List):
                self._refuse(target, f"{ast.unparse(target)} = … = …", "write two assignments")
        target = node.targets[0]
        is_part = isinstance(target, ast.Subscript) and _is_text(target.slice)  # obs["name"] = …
        if is_part and isinstance(node.value, ast.List):
            node.value = ast.copy_location(ast.Tuple(node.value.elts, ast.Load()), node.value)
        self.generic_visit(node)
        in_array = isinstance(target, ast.Subscript) and not is_part
        if in_array and isinstance(node.value, ast.Tuple):
            alike = ast.Call(self._call_name("numpy:alike"), [node.value], [])
            node.value = ast.copy_location(alike, node.value)
        if isinstance(target, ast.Tuple | ast.List) and not isinstance(node.value, ast.Tuple):
            # numba unpacks tuples alone
            unpack = ast.Call(self._call_name(f"unpack:{len(target.elts)}"), [node.value], [])
            node.value = ast.copy_location(unpack, node.value)
        return node

    def _check_target(self, target: ast.expr, *, in_place: bool = False) -> None:
        refused = self._targets.refusal(target, in_place=in_place)
        if refused is not None:
            self._refuse(target, *refused)

    def visit_For(self, node: ast.For) -> Any:
        if ast.unparse(node.iter) == "data.contact":
            self._refuse(node, "for … in data.contact", "write for i in range(data.ncon)")
        self.generic_visit(node)
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        statements: list[ast.stmt] = [node]
        if self._is_step and _is_no_pair(node.value):
            self._refuse(node, "what step returns", "expected (reward, terminated)")
        if self._terms:
            try:
                sums = rewards.sums_name(type(self._task), self._function)
                statements = rewards.compiled_return(
                    node, self._function, sums, self._self or "self"
                )
            except TypeError as error:
                self._refuse(node, "what step returns", str(error))
        for statement in statements:
            stored = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
            self._locals |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
            self.generic_visit(statement)
        return statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        plain = ast.Assign(targets=[node.target], value=node.value)
        return self.visit(ast.copy_location(plain, node))

    def visit_Starred(self, node: ast.Starred) -> Any:
        if isinstance(node.ctx, ast.Store):
            self._refuse(node, ast.unparse(node), "write what it stands for as a slice, x[1:]")
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        node.cause = None
        if isinstance(node.exc, ast.Call):
            node.exc.args = [_plain_text(argument) for argument in node.exc.args]
        self.generic_visit(node)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        if node.msg is not None:
            node.msg = _plain_text(node.msg)
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Constant):  # a docstring
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return node


def _refuser(what: str) -> Any:
    def visit(self: Rewriter, node: ast.AST) -> Any:
        return self._refuse(node, what, "")

    return visit


for _kind, _what in {
    "JoinedStr": "an f-string",
    "Lambda": "lambda",
    "Dict": "a dict",
    "Set": "a set",
    "ListComp": "a list comprehension",
    "DictComp": "a dict comprehension",
    "SetComp": "a set comprehension",
    "GeneratorExp": "a generator expression",
    "Try": "try",
    "With": "with",
    "Yield": "yield",
    "YieldFrom": "yield",
    "Await": "await",
    "Import": "import inside a method",
    "ImportFrom": "import inside a method",
    "Global": "global",
    "Nonlocal": "nonlocal",
    "Delete": "del",
    "ClassDef": "a class inside a method",
    "FunctionDef": "a function inside a method",
    "Match": "match",
    "NamedExpr": "the walrus operator",
}.items():
    setattr(Rewriter, f"visit_{_kind}", _refuser(_what))


def written(function: types.FunctionType) -> types.FunctionType:
    """The user's own function: under pyfastenv.reward_terms, if that is there."""
    return function.__wrapped__ if rewards.weights_of(function) else function  # type: ignore[attr-defined]


def _is_name(node: ast.AST, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_no_pair(node: ast.expr | None) -> bool:
    """Whether an expression is certainly not two values."""
    if isinstance(node, ast.Tuple):
        return len(node.elts) != 2
    return node is None or isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Compare)


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _is_name(node.func, "super") and not node.args


def _next_method(task: Task, function: types.FunctionType, name: str) -> Any:
    """The method that super().name is in a method of one of the task's classes."""
    classes = type(task).__mro__
    for i, cls in enumerate(classes):
        # by identity: `in` would ask an array among the attributes whether it equals a function
        if any(value is function for value in vars(cls).values()):
            for base in classes[i + 1 :]:
                if name in vars(base):
                    return vars(base)[name]
    return None


def _plain_text(node: ast.expr) -> ast.expr:
    """Without run-time values: the plain replay of a failure has the whole text."""
    if isinstance(node, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
        return ast.copy_location(ast.Constant("".join(map(str, parts))), node)
    if not isinstance(node, ast.Constant):
        return ast.copy_location(ast.Constant(ast.unparse(node)), node)
    return node


def _name_of(value: Any) -> str:
    return getattr(value, "__name__", repr(value))


def _a(noun: str) -> str:
    return ("an " if noun[:1] in "aeiouAEIOU" else "a ") + noun
