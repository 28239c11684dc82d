"""Files are opened by name only where that is safe: each module that does so says why, here.

All else goes by `pgdyno.folders`, which follows no link, or is read by `plan/schema/files.py`. A
new call fails this test until somebody has thought of who else can write there.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pgdyno

ROOT = Path(pgdyno.__file__).parent
METHODS = {
    "read_text", "read_bytes", "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to",
    "rmdir", "unlink", "chmod",
}  # fmt: skip
OF_OS = {
    "open", "mkdir", "makedirs", "rename", "renames", "replace", "remove", "unlink", "rmdir",
    "chmod", "chown", "lchown", "link", "symlink", "truncate", "utime", "removedirs",
}  # fmt: skip
OF_SHUTIL = {"copy", "copy2", "copyfile", "copytree", "rmtree", "move", "chown"}

KERNEL = "reads files of the kernel"
PACKAGE = "reads files of the package, which only its owner can change"
NAMED = "is what others use to open files by descriptors"
CLOSED = "works in a folder that is closed to others up to the root, as it asked before"
KNOWN = {
    "access.py": NAMED,
    "plan/schema/files.py": "opens what `access.locate` has judged, by its descriptor",
    "builder/trees.py": "opens relative to folders that are held",
    "builder/compile.py": "reads a log in the home, where only we write",
    "catalog/tables.py": PACKAGE,
    "cli/app.py": "opens /dev/null",
    "cli/help.py": "writes to a formatter, and to no file",
    "drive/null.py": KERNEL,
    "drive/process_cost.py": KERNEL,
    "target/server_host.py": KERNEL,
    "target/storage_durability.py": KERNEL,
    "target/host_facts.py": KERNEL,
    "target/durability.py": KERNEL,
    "target/binaries.py": "copies an installed package into a folder of ours alone",
    "probe/fio.py": CLOSED,
    "probe/folder.py": CLOSED,
    "report/notebook.py": PACKAGE,
    "report/html.py": PACKAGE,
    "sample/kernel_file.py": KERNEL,
    "sample/process_roles.py": KERNEL,
    "sample/samplers/frequency.py": KERNEL,
    "sample/samplers/live_cpu.py": KERNEL,
    "sample/samplers/cgroups.py": KERNEL,
    "plan/packaged.py": PACKAGE,
    "store/run_file.py": CLOSED,
    "store/output_file.py": CLOSED,
    "store/unlocked.py": "opens what `access.locate` has judged, by its descriptor",
    "host/knob_location.py": KERNEL,
    "host/device_claims.py": KERNEL,
    "host/state_folder.py": "opens folder by folder, relative to the one above, without links",
    "host/huge_pages.py": KERNEL,
    "host/device.py": KERNEL,
    "host/file_tree.py": KERNEL,
    "host/journal.py": "lies in a folder that `state_folder` has judged",
    "live/server.py": PACKAGE,
}


def opens(call: ast.Call) -> bool:
    """Whether it takes a path, and no descriptor of a folder beside it."""
    if any(one.arg in ("dir_fd", "src_dir_fd") for one in call.keywords):
        return False
    known = {"os": OF_OS, "shutil": OF_SHUTIL, "path": METHODS | {"open"}}
    match call.func:
        case ast.Name(id=name):
            return name == "open"
        case ast.Attribute(value=ast.Name(id=of), attr=name):
            return name in known.get(of, METHODS)
        case ast.Attribute(attr=name):
            return name in METHODS
    return False


def by_name() -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text())
        lines = [one.lineno for one in ast.walk(tree) if isinstance(one, ast.Call) and opens(one)]
        if lines:
            found[str(path.relative_to(ROOT))] = lines
    return found


def test_every_module_that_opens_by_name_is_known() -> None:
    found = by_name()

    assert {name: lines for name, lines in found.items() if name not in KNOWN} == {}
    assert set(KNOWN) - set(found) == set(), "these open nothing any more"


def test_a_call_by_name_is_told_from_one_in_a_folder() -> None:
    def says(text: str) -> bool:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        return opens(call)

    assert says("open('x')")
    assert says("os.open(path, flags)")
    assert says("path.open('rb')")
    assert says("(folder / 'x').read_text()")
    assert says("shutil.rmtree(folder)")
    assert not says("os.open('x', flags, dir_fd=handle)")
    assert not says("folder.open('x')")
