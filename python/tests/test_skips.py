"""A test that is left out is on the list that `./test` prints, or a failure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Each way that pytest has to leave a test out.
WAYS = {
    "a call": "import pytest\ndef test_it():\n    pytest.skip('why')\n",
    "a mark": "import pytest\n@pytest.mark.skip(reason='why')\ndef test_it(): ...\n",
    "a condition": "import pytest\n@pytest.mark.skipif(True, reason='why')\ndef test_it(): ...\n",
    "an import": "import pytest\npytest.importorskip('no_such_module', reason='why')\n",
    "a whole file": "import pytest\npytest.skip('why', allow_module_level=True)\n",
    "a failure that is expected": (
        "import pytest\n@pytest.mark.xfail(reason='why')\ndef test_it(): assert False\n"
    ),
}


def played(folder: Path, text: str, nothing: str) -> tuple[int, str]:
    """The status of pytest on a test of this text, and the list of what was skipped."""
    shutil.copy(HERE / "conftest.py", folder)
    (folder / "test_way.py").write_text(text)
    skipped = folder / "list"
    skipped.unlink(missing_ok=True)
    said = {"PRONY_SKIPPED": str(skipped), "PRONY_SKIP_NOTHING": nothing}
    status = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
        cwd=folder,
        env={**os.environ, **said},
        capture_output=True,
        check=False,
    ).returncode
    return status, skipped.read_text() if skipped.exists() else ""


@pytest.mark.parametrize("way", WAYS)
def test_what_was_left_out_vanished_without_a_word(tmp_path: Path, way: str) -> None:
    status, listed = played(tmp_path, WAYS[way], "0")
    assert status in (0, 5), way
    assert listed.startswith("test_way.py")
    assert listed.endswith(": why\n")
    status, listed = played(tmp_path, WAYS[way], "1")
    assert status in (1, 2)
    assert listed == ""
