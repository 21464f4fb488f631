"""Work in pieces: in parallel as in a row, taken up where it stopped, never mixed with that of other code."""

from __future__ import annotations

import json

import pytest

from shoal.progress import ignore
from shoal.studies import running
from shoal.studies.running import Task, make_folder, run_tasks


def double(shared, number):
    return {"number": shared * number, "third": number / 3}


def refuse(shared, number):
    raise ValueError(number)


TASKS = [Task(f"double-{i}", double, (i,), cost=i + 1) for i in range(6)]


def test_in_parallel_as_in_a_row(tmp_path):
    assert run_tasks(TASKS, 10, None, 2, ignore) == run_tasks(TASKS, 10, None, 1, ignore)
    assert run_tasks(TASKS, 10, tmp_path, 1, ignore)["double-4"] == {"number": 40, "third": 4 / 3}


def test_what_is_kept_is_not_done_again(tmp_path):
    shares = []
    first = run_tasks(TASKS[:3], 10, tmp_path, 1, shares.append)
    assert shares == pytest.approx([0, 3 / 6, 5 / 6, 1])
    (tmp_path / "double-1.json").write_text(json.dumps({"number": "from the disk"}))
    (tmp_path / "double-2.json").write_text('{"numb')  # cut off
    shares.clear()
    found = run_tasks(TASKS, 10, tmp_path, 1, shares.append)
    assert found["double-1"] == {"number": "from the disk"}
    assert found["double-2"] == first["double-2"]
    assert shares[0] == pytest.approx((1 + 2) / 21)
    assert set(found) == {task.name for task in TASKS}


def test_what_was_finished_before_a_failure_is_kept(tmp_path):
    with pytest.raises(ValueError, match="7"):
        run_tasks([*TASKS, Task("last", refuse, (7,), cost=0.1)], 10, tmp_path, 1, ignore)
    assert len(list(tmp_path.glob("double-*.json"))) == 6


def test_other_code_or_data_has_another_folder(tmp_path, monkeypatch):
    one = make_folder(tmp_path, "data", "0")
    assert make_folder(tmp_path, "data", "0") == one
    assert make_folder(tmp_path, "other", "0") != one
    assert make_folder(tmp_path, "data", "1") != one
    monkeypatch.setattr(running.shoal, "__version__", "0.0.0")
    assert make_folder(tmp_path, "data", "0") != one


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(running.FileError, match="Cannot make the folder"):
        make_folder(tmp_path / "file", "data")
