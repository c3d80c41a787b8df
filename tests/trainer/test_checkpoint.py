import errno
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from vantage_trainer import checkpoint
from vantage_trainer.checkpoint import Snapshot
from vantage_trainer.engine_state import MOMENTS, AdamState
from vantage_trainer.failure import Failure, explained
from vantage_trainer.progress import Progress


def snapshot(step: int, score: float | None = None) -> Snapshot:
    weights = {"layer.weight": torch.full((2, 3), float(step)), "head.weight": torch.arange(4.0)}
    adam = AdamState(weights, {moment: {n: w / 2 for n, w in weights.items()} for moment in MOMENTS}, steps=step)
    progress = Progress(stage="rl", step=step, cursor=7 * step, score=score, history={"a": [1, 2]})
    return Snapshot(progress, adam, [torch.get_rng_state()], {"layer.weight": torch.zeros(2, 3)})


def save(root: Path, step: int, score: float | None = None, keep_last: int = 2) -> Path:
    return checkpoint.save(root, snapshot(step, score), keep_last=keep_last, keep_best=True)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    folder = save(tmp_path, 100)
    assert folder.name == "step-000100"
    found, sentences = checkpoint.load_last(tmp_path)
    expected = snapshot(100)
    assert found is not None and not sentences
    assert found.progress == expected.progress and found.adam.steps == 100
    assert torch.equal(found.adam.parameters["layer.weight"], expected.adam.parameters["layer.weight"])
    assert torch.equal(found.adam.moments["exp_avg_sq"]["head.weight"], torch.arange(4.0) / 2)
    assert torch.equal(found.random[0], expected.random[0])
    assert torch.equal(found.reference["layer.weight"], torch.zeros(2, 3))


def test_old_ones_go_and_the_best_stays(tmp_path: Path) -> None:
    for step, score in [(1, 0.9), (2, 0.5), (3, 0.6), (4, 0.7)]:
        save(tmp_path, step, score)
    assert [folder.name for folder in checkpoint.found(tmp_path)] == ["step-000001", "step-000003", "step-000004"]


def test_those_of_the_warm_start_come_before_those_of_the_steps(tmp_path: Path) -> None:
    early = snapshot(300)
    early.progress.stage = "warm_start"
    checkpoint.save(tmp_path, early, keep_last=5, keep_best=True)
    save(tmp_path, 2, keep_last=5)
    assert [folder.name for folder in checkpoint.found(tmp_path)] == ["start-000300", "step-000002"]


@pytest.mark.parametrize("name", ["parameters.safetensors", "exp_avg.safetensors", "state.json", "manifest.json"])
def test_a_damaged_one_is_named_and_the_one_before_is_used(tmp_path: Path, name: str) -> None:
    save(tmp_path, 1)
    newest = save(tmp_path, 2)
    content = (newest / name).read_bytes()
    (newest / name).write_bytes(content[: len(content) // 2])
    found, [sentence] = checkpoint.load_last(tmp_path)
    assert found is not None and found.progress.step == 1
    assert "step-000002" in sentence


def breaks(folder: Path, how: str) -> None:
    """Do to a checkpoint what disks, people and other versions do."""
    target, manifest = folder / "exp_avg.safetensors", folder / "manifest.json"
    if how == "a folder in place of a file":
        target.unlink()
        target.mkdir()
    elif how == "an empty file":
        target.write_bytes(b"")
    elif how == "an empty manifest":
        manifest.write_bytes(b"")
    elif how == "a folder in place of the manifest":
        manifest.unlink()
        manifest.mkdir()
    elif how == "a file in place of it":
        shutil.rmtree(folder)
        folder.write_text("")
    elif how == "a manifest of something else":
        manifest.write_text("[]")
    elif how == "a format of the future":
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 99}))
    else:
        tell(folder, {"progress": snapshot(2).progress.to_json() | {"mood": 1}, "adam_steps": 2})


def tell(folder: Path, state: dict) -> None:
    """Write another state with a manifest that fits it."""
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "state.json").write_text(json.dumps(state))
    manifest["files"]["state.json"] = checkpoint._digest(folder / "state.json")
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("a folder in place of a file", "is damaged: exp_avg.safetensors is not as it was written"),
        ("an empty file", "is damaged: exp_avg.safetensors"),
        ("an empty manifest", "has no manifest"),
        ("a folder in place of the manifest", "has no manifest"),
        ("a file in place of it", "has no manifest"),
        ("a manifest of something else", "holds something else than this version of Vantage writes"),
        ("a format of the future", "was written by another version of Vantage (format 99)"),
        ("a state of the future", "holds something else than this version of Vantage writes"),
    ],
)
def test_whatever_stands_in_place_of_a_checkpoint_is_told_and_passed_over(how: str, told: str, tmp_path: Path) -> None:
    save(tmp_path, 1)
    breaks(save(tmp_path, 2), how)
    found, [sentence] = checkpoint.load_last(tmp_path)
    assert found is not None and found.progress.step == 1
    assert sentence.startswith("The checkpoint step-000002 ") and told in sentence
    save(tmp_path, 2)
    found, sentences = checkpoint.load_last(tmp_path)
    assert found is not None and found.progress.step == 2 and not sentences


def test_one_that_may_not_be_read_is_told_and_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    digest = checkpoint._digest

    def forbidden(path: Path) -> str:
        if path.parent.name == "step-000002":
            raise PermissionError(errno.EACCES, "Permission denied")
        return digest(path)

    monkeypatch.setattr(checkpoint, "_digest", forbidden)
    found, sentences = checkpoint.load_last(tmp_path)
    assert found is not None and found.progress.step == 1
    assert sentences == ["The checkpoint step-000002 cannot be read (Permission denied)."]


def test_one_that_others_wait_for_is_not_pruned_until_they_have_it(tmp_path: Path) -> None:
    save(tmp_path, 1, keep_last=1)
    (tmp_path / checkpoint.KEEP).mkdir()
    (tmp_path / checkpoint.KEEP / "step-000001").touch()
    save(tmp_path, 2, keep_last=1)
    save(tmp_path, 3, keep_last=1)
    assert [folder.name for folder in checkpoint.found(tmp_path)] == ["step-000001", "step-000003"]
    (tmp_path / checkpoint.KEEP / "step-000001").unlink()
    save(tmp_path, 4, keep_last=1)
    assert [folder.name for folder in checkpoint.found(tmp_path)] == ["step-000004"]


def test_a_checkpoint_that_would_not_fit_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1)
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    monkeypatch.setattr(checkpoint, "_write", lambda *given: pytest.fail("it was begun"))
    with pytest.raises(
        Failure, match=r"disk is full but for 1 MB .* needs 17 MB: free some space .* then resume"
    ) as caught:
        save(tmp_path, 2)
    assert caught.value.code == "out_of_disk"
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


def test_what_a_run_writes_after_it_passed_over_a_damaged_one_is_kept_in_its_place(tmp_path: Path) -> None:
    save(tmp_path, 10)
    (save(tmp_path, 20) / "manifest.json").unlink()
    checkpoint.load_last(tmp_path)
    save(tmp_path, 12, keep_last=1)
    found, sentences = checkpoint.load_last(tmp_path)
    assert found is not None and found.progress.step == 12 and not sentences
    assert (tmp_path / ".step-000020.unread").is_dir()


def test_a_run_whose_checkpoints_are_all_damaged_does_not_start_over(tmp_path: Path) -> None:
    (save(tmp_path, 1) / "exp_avg.safetensors").unlink()
    with pytest.raises(Failure, match="No checkpoint of this run can be read"):
        checkpoint.load_last(tmp_path)


FULL = [
    ("_write_json", OSError(errno.ENOSPC, "No space left on device")),
    ("save_file", SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")),
]


@pytest.mark.parametrize(("writer", "fault"), FULL)
def test_a_full_disk_leaves_nothing_half_written(
    writer: str, fault: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)

    def full(*arguments: object, **options: object) -> None:
        raise fault

    monkeypatch.setattr(checkpoint, writer, full)
    with pytest.raises(type(fault)) as caught:
        save(tmp_path, 2)
    code, sentence = explained(caught.value)
    assert code == "out_of_disk" and "free some space" in sentence and "resume" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]
    found, sentences = checkpoint.load_last(tmp_path)
    assert found is not None and found.progress.step == 1 and not sentences


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    ours = {"layer.weight": torch.zeros(2, 4), "head.weight": torch.zeros(4)}
    with pytest.raises(Failure, match="another model: layer.weight"):
        checkpoint.check_fits(snapshot(1), ours)
