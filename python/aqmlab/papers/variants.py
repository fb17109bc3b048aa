"""Other readings and smaller versions of a scenario file, as text in which everything else is unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab.errors import ScenarioError, UsageError, unknown
from aqmlab.papers.paper import Change, Paper, PaperExperiment, Thinned

Reading = Mapping[str, str]
"""The label of a candidate, by name of the setting; settings left out keep the chosen candidate."""


def variant(paper: Paper, experiment: PaperExperiment, reading: Reading, thinned: Thinned) -> str:
    """Return the scenario of an experiment under a reading, with the labels that ``thinned`` keeps.

    Candidates change the same keys as arms do. A candidate's keys are added to every arm, after the arm's own
    keys; a file without arms gets an arm that holds them. A swept key is changed in its axis, one value per
    label; the labels stay. A class of traffic that the file lacks is added. If nothing is changed, the text
    is the file's own.

    Raises
    ------
    ScenarioError
        If the file cannot be read, or lacks an axis or a label that ``thinned`` keeps.
    """
    file = paper.path / experiment.file
    text = file.read_text(encoding="utf-8")
    changed = [
        change
        for setting in paper.settings
        if (label := reading.get(setting.name, setting.chosen)) != setting.chosen
        for change in setting.changes(experiment.file, label)
    ]
    if not changed and not thinned.keep:
        return text
    import tomlkit

    document = tomlkit.parse(text)
    for change in changed:
        if not (_swept(document, change, text, file) or _added(document, change)):
            _put(document, change)
    if thinned.keep:
        _thin(document, thinned.keep, _axes(text, file), file)
    return tomlkit.dumps(document)


def changes(paper: Paper, experiment: PaperExperiment, reading: Reading) -> bool:
    """Whether a reading differs from the fixed one in anything that the experiment depends on."""
    return any(
        reading.get(setting.name, setting.chosen) != setting.chosen
        and setting.changes(experiment.file, reading[setting.name])
        for setting in paper.settings
    )


_COMMON = frozenset({"title", "question", "duration", "warmup", "seed", "runs", "metrics", "stop"})
"""Keys that no arm may change; they are set at the top level of the file."""


def _put(document: Any, change: Change) -> None:  # noqa: ANN401 (any tomlkit type)
    first = change.key.split(".", 1)[0]
    arms = document.get("arm")
    if first in _COMMON:
        document[change.key] = change.value
    elif arms:
        for arm in arms:
            if not change.arms or arm["name"] in change.arms:
                arm[change.key] = change.value
    else:
        import tomlkit

        # A file without arms describes one arm. Once this arm has a name, it has a table that can hold the
        # change.
        only = tomlkit.table()
        only["name"] = "main"
        only[change.key] = change.value
        document["arm"] = tomlkit.aot()
        document["arm"].append(only)


def _swept(document: Any, change: Change, text: str, file: Path) -> bool:  # noqa: ANN401 (any tomlkit type)
    """If an axis sets the key, change the axis's values; its labels stay those of the file."""
    for axis in document.get("sweep", {}).get("zip", ()):
        if change.key in axis:
            labels = next(about["labels"] for about in _axes(text, file) if about["name"] == axis["name"])
            axis["labels"] = labels
            axis[change.key] = change.value
            return True
    return False


def _added(document: Any, change: Change) -> bool:  # noqa: ANN401 (any tomlkit type)
    """Add a class of traffic, if the key names a whole class that does not exist yet."""
    import tomlkit

    kind, _, name = change.key.partition(".")
    if kind != "traffic" or "." in name or any(c["name"] == name for c in document["traffic"]):
        return False
    traffic = tomlkit.table()
    traffic.update({"name": name, **change.value})
    document["traffic"].append(traffic)
    return True


def as_far_as_swept(paper: Paper, experiment: PaperExperiment, thinned: Thinned) -> Thinned:
    """Return a smaller version without the axes that the experiment lacks."""
    file = paper.path / experiment.file
    axes = _axes(file.read_text(encoding="utf-8"), file)
    known = {name for axis in axes for name in (axis["name"], axis["short"])}
    return Thinned(thinned.runs, {axis: labels for axis, labels in thinned.keep.items() if axis in known})


def _axes(text: str, file: Path) -> list[dict[str, Any]]:
    from aqmlab import _core

    axes: list[dict[str, Any]] = json.loads(_core.Sweep(text, str(file)).about())["axes"]
    return axes


def _thin(
    document: Any,  # noqa: ANN401 (any tomlkit type)
    keep: Mapping[str, tuple[str, ...]],
    axes: list[dict[str, Any]],
    file: Path,
) -> None:
    """Remove all labels except those in ``keep`` from the axes that ``keep`` names.

    The scenario's own claims may name the removed labels, so they are removed too; a reproduction scores the
    paper's findings instead.
    """
    document.pop("claim", None)
    for name, labels in keep.items():
        axis = next((a for a in axes if name in (a["name"], a["short"])), None)
        if axis is None:
            shorts = [a["short"] for a in axes]
            raise ScenarioError(f"{file}: keep: {unknown('axis', name, shorts)}")
        for label in labels:
            if label not in axis["labels"]:
                raise ScenarioError(f"{file}: keep: {unknown(f'label of {name}', label, axis['labels'])}")
        places = [i for i, label in enumerate(axis["labels"]) if label in labels]
        _leave(document["sweep"], axis["name"], places)


def _leave(sweep: Any, name: str, places: list[int]) -> None:  # noqa: ANN401 (any tomlkit type)
    if name in sweep:
        sweep[name] = [sweep[name][i] for i in places]
        return
    for zipped in sweep.get("zip", ()):
        if zipped.get("name") == name:
            for key in list(zipped):
                if key != "name":
                    zipped[key] = [zipped[key][i] for i in places]
            return
    if "case" in sweep:
        cases = sweep["case"]
        for i in reversed(range(len(cases))):
            if i not in places:
                del cases[i]
        return
    raise UsageError(f"the axis `{name}` cannot be made smaller")
