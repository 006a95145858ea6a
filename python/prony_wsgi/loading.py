"""Finds an application from its name, `module:app`, and says what is wrong where it cannot."""

import ast
import difflib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType


class LoadError(Exception):
    """Why an application cannot be loaded, for its author."""


def load(application: str, path: Sequence[str | os.PathLike[str]]) -> Callable[..., object]:
    """The application of this name; its module is looked for in `path` first.

    `module:app` is a callable in the module, `module:make()` what a function of it
    returns. `app` may have dots: `module:site.app`.
    """
    module_name, colon, name = application.partition(":")
    if not (colon and module_name and name):
        raise LoadError(
            f"`{application}` names no application: "
            "give a module and a name in it, such as shop.web:app"
        )
    folders = [os.fspath(folder) for folder in path]
    sys.path[:] = folders + [entry for entry in sys.path if entry not in folders]
    module = _module(module_name, folders)
    is_factory = name.endswith("()")
    found = _attribute(module, name.removesuffix("()"))
    if is_factory:
        if not callable(found):
            raise LoadError(_not_callable(module, name.removesuffix("()"), found))
        found = found()
        if not callable(found):
            raise LoadError(f"`{application}` yields {_kind(found)}, which cannot be called")
    if not callable(found):
        raise LoadError(_not_callable(module, name, found))
    return found


def _module(name: str, folders: Sequence[str]) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Of another name, it is an import in the module that fails.
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            looked = ", ".join(folders)
            raise LoadError(
                f"there is no module `{error.name}` in {looked} or where Python looks else; "
                "--path names other directories"
            ) from None
        raise LoadError(_failed(name, error)) from None
    except Exception as error:
        raise LoadError(_failed(name, error)) from None


def _failed(name: str, error: BaseException) -> str:
    """A traceback that begins in the application."""
    trace = error.__traceback__
    inner = [
        frame
        for frame in traceback.extract_tb(trace)
        if not frame.filename.startswith("<frozen importlib")
        and frame.filename != __file__
        and frame.filename != importlib.__file__
    ]
    lines = traceback.format_list(inner) + traceback.format_exception_only(error)
    return f"the module `{name}` cannot be imported:\n" + "".join(lines).rstrip()


def _attribute(module: ModuleType, name: str) -> object:
    found: object = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            where = getattr(module, "__file__", None) or module.__name__
            near = difflib.get_close_matches(part, dir(found), 1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise LoadError(f"{where}: there is no `{part}` for `{name}`{meant}") from None
    return found


def _not_callable(module: ModuleType, name: str, found: object) -> str:
    line = _line(module, name.partition(".")[0])
    where = getattr(module, "__file__", None) or module.__name__
    place = where if line is None else f"{where}:{line}"
    return f"{place}: `{name}` is {_kind(found)}, and an application is something to be called"


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeio" else f"a {name}"


def _line(module: ModuleType, name: str) -> int | None:
    """Where the module last gives this name a value, at its top level."""
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return None
    last = None
    for statement in tree.body:
        for node in ast.walk(statement):
            is_name = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            if is_name and getattr(node, "id", None) == name:
                last = statement.lineno
            if isinstance(node, ast.alias) and (node.asname or node.name) == name:
                last = statement.lineno
    return last
