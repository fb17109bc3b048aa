"""Documents for BokehJS, written without importing Bokeh.

BokehJS draws what a JSON document of models describes. Bokeh in Python makes that document as well, but needs
half a second to be imported, and as long again to check and write a page of charts. A report of ours has two
dozen kinds of models, all made in :mod:`aqmlab.reports.figures`. What is left out of a model has the default
that BokehJS gives it. The tests read documents back with Bokeh itself.
"""

from __future__ import annotations

import base64
import math
import sys
import zlib
from array import array
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aqmlab.errors import HostError

_DTYPES = {"f": "float32", "d": "float64"}


class Model:
    """A BokehJS object: the name of its type and the attributes that differ from their defaults.

    A model may stand in several places of a document; equal names and attributes do not make two models one.
    Attributes are numbers, texts, ``None``, lists, dicts as Bokeh's JSON has them, arrays (``array("f")`` or
    ``"d"``) and other models.
    """

    def __init__(self, type_name: str, /, **attributes: Any) -> None:  # noqa: ANN401 (whatever BokehJS takes)
        self.type_name = type_name
        self.attributes = attributes


def column(name: str, transform: Model | None = None) -> dict[str, Any]:
    """A property that follows a column of the data, through a colour mapper if one is given."""
    field: dict[str, Any] = {"type": "field", "field": name}
    return field if transform is None else field | {"transform": transform}


def constant(value: object) -> dict[str, Any]:
    """A property that is the same for each point."""
    return {"type": "value", "value": value}


def table(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a data source, by name."""
    return {"type": "map", "entries": [[name, values] for name, values in columns.items()]}


class _Writer:
    """Gives each model its id where it comes first, and refers to it from there on."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}

    def id_of(self, model: Model) -> str:
        return self._ids[id(model)]

    def plain(self, value: Any) -> Any:  # noqa: ANN401 (JSON)
        match value:
            case Model():
                return self._model(value)
            case array():
                return _array(value)
            case dict():
                return {key: self.plain(part) for key, part in value.items()}
            case list() | tuple():
                return [self.plain(part) for part in value]
            case float() if not math.isfinite(value):
                return {"type": "number", "value": "nan" if math.isnan(value) else f"{value:+}"}
        return value

    def _model(self, model: Model) -> dict[str, Any]:
        known = self._ids.get(id(model))
        if known is not None:
            return {"id": known}
        # BokehJS counts the models that it makes itself from p1001 on.
        number = self._ids[id(model)] = f"m{len(self._ids) + 1}"
        attributes = {name: self.plain(value) for name, value in model.attributes.items()}
        return {"type": "object", "name": model.type_name, "id": number, "attributes": attributes}


def _array(values: array[float]) -> dict[str, Any]:
    # BokehJS unpacks each array with gzip.
    packed = zlib.compress(values.tobytes(), wbits=31)
    data = base64.b64encode(packed).decode("ascii")
    return {
        "type": "ndarray",
        "array": {"type": "bytes", "data": data},
        "shape": [len(values)],
        "dtype": _DTYPES[values.typecode],
        "order": sys.byteorder,
    }


def document(roots: Mapping[str, Model]) -> dict[str, Any]:
    """A document and where its roots are to be drawn.

    Parameters
    ----------
    roots
        Figures by the ``id`` of the element that each is drawn in.

    Returns
    -------
    dict
        ``document`` in BokehJS's form, but for ``version``, which the page takes from its BokehJS; and
        ``places``, the elements' ids by those of the models.
    """
    writer = _Writer()
    models = [writer.plain(root) for root in roots.values()]
    return {
        "document": {"title": "", "roots": models},
        "places": {writer.id_of(root): place for place, root in roots.items()},
    }


def bokehjs() -> str:
    """The script that draws, as it is installed with Bokeh."""
    # Found, not imported.
    found = find_spec("bokeh")
    if found is None or found.origin is None:
        raise HostError("Bokeh is not installed: a report takes its script from there")
    file = Path(found.origin).parent / "server" / "static" / "js" / "bokeh.min.js"
    return file.read_text(encoding="utf-8")
