"""What bash does behind a name whose value is still to be typed; else completion is typer's."""

from __future__ import annotations

from typer import _completion_classes, _completion_shared

_END = "    return 0\n"
_STAY = '    [[ "${COMPREPLY[*]}" == *= ]] && compopt -o nospace\n'


def stay_behind_a_name() -> None:
    """Let no space follow `work_mem=`: its value would be another argument, which is refused."""
    script = _completion_shared.COMPLETION_SCRIPT_BASH.replace(_END, _STAY + _END)
    _completion_shared._completion_scripts["bash"] = script  # what is installed
    _completion_classes.BashComplete.source_template = script  # what is asked for by a variable
