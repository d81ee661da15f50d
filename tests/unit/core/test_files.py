"""Files that are written whole or not at all."""

from __future__ import annotations

import threading

from edgefl.core.files import replacing


def test_two_writers_of_one_path_do_not_mix(tmp_path):
    """Each has a temporary file of its own; the last one's is what stays, whole."""
    path, inside, done = tmp_path / "kept.json", threading.Event(), threading.Event()

    def slow():
        with replacing(path) as temporary, temporary.open("w") as file:
            file.write("first ")
            file.flush()
            inside.set()
            done.wait(10)
            file.write("and whole")

    writer = threading.Thread(target=slow)
    writer.start()
    inside.wait(10)
    with replacing(path) as temporary:
        temporary.write_text("second")
    assert path.read_text() == "second"
    done.set()
    writer.join()
    assert path.read_text() == "first and whole"
    assert list(tmp_path.iterdir()) == [path]
