"""`halfseen fit-images` and what takes its models: folders in, scores and graphs out."""

import csv
import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image
from scipy.special import logit
from tables_cli import halfseen

from halfseen import InputError, load
from halfseen.data.image_folders import open_folder
from image_folders import TINY, save, write_folders

SET = [word for setting in TINY for word in ("--set", setting)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A source, a target with three damaged files, and a model of both by a mask."""
    folder = tmp_path_factory.mktemp("images")
    source, target = write_folders(folder)
    (target / "text.png").write_text("no image at all")
    (target / "below" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0broken")
    whole = save(source / "a dark one" / "cut.png", size=(60, 60)).read_bytes()
    (source / "a dark one" / "cut.png").write_bytes(whole[: len(whole) // 2])
    mask = np.zeros((5, 7), np.uint8)
    mask[2:, 3:] = 255
    Image.fromarray(mask).save(folder / "mask.png")
    run = halfseen(
        "fit-images", source, target, "--mask", folder / "mask.png", *SET, "--json",
        "--set", "images.standardize=true", "-o", folder / "model",
    )  # fmt: skip
    assert run.code == 0, run.err
    (folder / "fit.json").write_text(run.out)
    (folder / "fit.txt").write_text(run.err)
    return folder


def test_a_fit_says_what_it_understood_and_skipped(place):
    said, facts = (place / "fit.txt").read_text(), json.loads((place / "fit.json").read_text())
    assert facts["shape"] == [3, 16, 16], "a coloured image makes all coloured"
    assert facts["classes"] == {"a dark one": 9, "ein helles, größeres": 8}
    assert facts["missing_pixels"] == 143, "100 cells, and those that enlarging mixes with them"
    assert len(facts["skipped"]) == 3
    assert facts["metrics"]["held_out_source"]["without_missing_block"]["rows"] == 3
    for name in ("text.png", "broken.jpg", "cut.png"):
        assert name in said
    assert "3 images were skipped; --strict stops instead." in said
    assert not (place / ".model.unfinished").exists()


def test_two_models_answer_together_unless_others_are_named(place, tmp_path):
    model = load(place / "model")
    assert model.title == "Adaptation-Imputation and Adaptation-IgnoreComponent"
    assert model.weights.members == (0.5, 0.5)
    assert (
        "Adaptation-IgnoreComponent, which answer together; seed 0."
        in (place / "fit.txt").read_text()
    )
    run = halfseen(
        "fit-images", place / "source", place / "target", "--missing", "top:0.5", *SET,
        "--models", "Source-IgnoreComponent", "-o", tmp_path / "one",
    )  # fmt: skip
    assert "Models: Source-IgnoreComponent; seed 0." in run.out
    assert load(tmp_path / "one").title == "Source-IgnoreComponent"


def scores(place, folder, tmp_path, *options):
    run = halfseen("predict", place / "model", folder, "-o", tmp_path / "s.csv", *options)
    assert run.code == 0, run.err
    with (tmp_path / "s.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file)), run


def test_scores_name_each_file(place, tmp_path):
    found, run = scores(place, place / "target", tmp_path)
    assert [*found[0]] == ["file", "p_a dark one", "p_ein helles, größeres", "prediction"]
    assert [row["file"] for row in found][:2] == ["0 é.png", "1 é.png"]
    assert len(found) == 12
    assert "2 images were skipped" in run.out
    for row in found:
        names = ["a dark one", "ein helles, größeres"]
        shares = [float(row[f"p_{name}"]) for name in names]
        assert sum(shares) == pytest.approx(1)
        assert row["prediction"] == names[int(np.argmax(shares))]
    one, _ = scores(place, place / "target" / "0 é.png", tmp_path)
    assert float(one[0]["p_a dark one"]) == pytest.approx(float(found[0]["p_a dark one"]), abs=1e-6)


def test_what_stands_in_missing_pixels_is_not_looked_at(place, tmp_path):
    shown = np.full((16, 16), 90, np.uint8)
    other = shown.copy()
    other[8:, 9:] = 255  # inside the mask, which begins at 6.4 and 6.9
    for name, pixels in (("a", shown), ("b", other)):
        (tmp_path / "new").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "new" / f"{name}.png")
    first, second = scores(place, tmp_path / "new", tmp_path)[0]
    assert first["p_a dark one"] == second["p_a dark one"]


def test_a_strict_run_stops_at_the_first_damaged_file(place, tmp_path):
    run = halfseen(
        "predict", place / "model", place / "target", "-o", tmp_path / "s.csv", "--strict"
    )
    assert run.code == 2
    assert "text.png is no PNG or JPEG image" in run.err
    assert not list(tmp_path.iterdir())
    words = ["fit-images", place / "source", place / "target", "--missing", "top:0.5", "--dry-run"]
    assert halfseen(*words).code == 0
    run = halfseen(*words, "--strict")
    assert run.code == 2
    assert "text.png" in run.err


def test_a_time_limit_shortens_the_training(place, tmp_path):
    words = ["fit-images", place / "source", place / "target", "--missing", "top:0.5"]
    words += ["--time-limit", "2", "-o", tmp_path / "model"]
    run = halfseen(*words, *SET)
    assert run.code == 2
    assert "so does training.joint_epochs (a preset's, or yours): give one of them." in run.err
    run = halfseen(*words, *SET[:-2])
    assert run.code == 0, run.err
    (said,) = [line for line in run.out.splitlines() if "steps of each training" in line]
    steps = int(said.split()[0].replace(",", ""))
    assert 45 <= steps < 4000
    assert said.endswith("steps of each training keep to 2 s.")
    training = load(tmp_path / "model").members[0].options.training
    assert training.joint_steps == steps


def test_inspect_and_report_know_images(place, tmp_path):
    run = halfseen("inspect", place / "model")
    assert "Predicts the class: a dark one, ein helles, größeres." in run.out
    assert "Images of 16 × 16 pixels, 3 channels;" in run.out
    assert "Trained on target target: 12 rows" in run.out
    run = halfseen("report", place / "model", "-o", tmp_path / "r.html")
    assert run.code == 0, run.err
    page = (tmp_path / "r.html").read_text()
    assert "143 of 256 pixels" in page


def test_the_exported_graph_takes_bytes_and_agrees(place, tmp_path):
    import onnxruntime

    run = halfseen("export", place / "model", "--onnx", tmp_path / "m.onnx")
    assert run.code == 0, run.err
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    file = save(tmp_path / "new" / "1.png", level=60, size=(16, 16), mode="RGB")
    with Image.open(file) as image:
        pixels = np.asarray(image).transpose(2, 0, 1)[None]
    probabilities, best = session.run(None, {"images": pixels})
    (row,), _ = scores(place, tmp_path / "new", tmp_path)
    assert probabilities[0, 0] == pytest.approx(float(row["p_a dark one"]), abs=1e-5)
    assert best[0] == row["prediction"]


def test_best_effort_is_both_models_of_five_folds_together(place, tmp_path):
    words = ["--missing", "left:0.5", "--effort", "best", "--size", "8", *SET]
    run = halfseen(
        "fit-images", place / "source", place / "target", *words, "-o", tmp_path / "model"
    )
    assert run.code == 0, run.err
    model = load(tmp_path / "model")
    rows = np.random.default_rng(0).uniform(-1, 1, (7, 3, 8, 8)).astype(np.float32)
    each = [np.exp(member.raw_prediction(rows)) for member in model.members]
    assert len(each) == 10
    assert not np.allclose(each[0], each[1])
    together = np.exp(model.raw_prediction(rows))
    assert np.allclose(together, np.mean(each, axis=0), atol=1e-6)


def test_a_stopped_fit_goes_on(place, tmp_path, monkeypatch):
    from halfseen.model import model

    words = [
        "fit-images", place / "source", place / "target", "--missing", "left:0.5", "--seed", "3",
        "--size", "8", *SET, "-o", tmp_path / "model",
    ]  # fmt: skip

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(model.Model, "save", stopped)
        assert halfseen(*words).code == 130
    assert list((tmp_path / ".model.unfinished").iterdir())
    run = halfseen(*words)
    assert "Going on where an earlier fit of the same model stopped" in run.out
    assert run.code == 0, run.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--missing bottom:0.5", "Say where to write the model"),
        ("-o m", "either --missing SIDE:FRACTION"),
        ("-o m --missing top:0.5 --mask mask.png", "either --missing SIDE:FRACTION"),
        ("-o m --missing middle:0.5", "name a side (top, bottom, left, right)"),
        ("-o m --mask none.png", "The mask none.png does not exist."),
        ("-o m --mask fit.txt", "fit.txt is no PNG or JPEG image"),
        ("-o m --missing top:0.5 --models Adaptation-Full", "Full models are for benchmarks"),
        ("-o m --missing top:0.5 --set training.speed=3", "training.speed"),
        ("-o source/m --missing top:0.5", "lies inside the source folder"),
        ("-o m --missing top:0.5 --size 256", "GiB of memory"),
    ],
)
def test_what_cannot_be_is_said_before_any_work(place, monkeypatch, words, message):
    from halfseen.cli import fit_images

    monkeypatch.chdir(place)
    monkeypatch.setattr(fit_images, "MOST_BYTES", 2**20)
    before = sorted(place.rglob("*"))
    run = halfseen("fit-images", "source", "target", *words.split())
    assert run.code == 2
    assert message in run.err
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "target", "target lies inside .*, where it would count as a class"),
        ("source", "source", "source is the source and cannot be the target too"),
        ("source", "target/../source", "source is the source and cannot be the target too"),
        ("source", "", "source lies inside .*, whose images would be the source's too"),
    ],
)
def test_source_and_target_are_apart(place, source, target, message):
    words = ["--missing", "top:0.5", "--dry-run"]
    run = halfseen("fit-images", place / source, place / target, *words)
    assert run.code == 2
    assert re.search(message, " ".join(run.err.split()))


def test_images_without_a_label_are_used_and_counted(place, tmp_path):
    for number in range(6):
        for folder, level in (("more", 25), ("others", 185)):
            save(tmp_path / folder / "any" / f"{number}.png", level=level + number)
    words = [
        "fit-images", place / "source", place / "target", "--missing", "bottom:0.5", *SET,
        "--unlabelled", tmp_path / "more", "--unlabelled", tmp_path / "others",
    ]  # fmt: skip
    run = halfseen(*words, "-o", tmp_path / "model", "--json")
    assert run.code == 0, run.err
    said, facts = " ".join(run.err.split()), json.loads(run.out)
    assert [entry["images"] for entry in facts["unlabelled"]] == [6, 6]
    assert "16 images have a label, and a teacher that sees whole images labels 12 more." in said
    assert "labelled images held out it is right about" in said
    assert facts["metrics"]["few_images"]["held_out"] == 3
    assert (
        "Trained on unlabelled more, others: 12 rows" in halfseen("inspect", tmp_path / "model").out
    )


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("target", "overlaps with the target .*, whose images lack a part"),
        ("target/below", "overlaps with the target .*, whose images lack a part"),
        ("source", "source, whose images would count twice"),
        ("empty", "holds no image"),
        ("coloured", "coloured have colours, and those of source and target are grey"),
        ("broken", "No image of .*broken can be used"),
    ],
)
def test_images_without_a_label_are_complete_and_apart(place, tmp_path, folder, message):
    for number in range(12):
        save(tmp_path / "grey" / f"{number}.png", level=30 + number)
    save(tmp_path / "coloured" / "1.png", mode="RGB")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "1.png").write_text("no image")
    own = tmp_path / folder
    target = place / "target" if folder.startswith("target") else tmp_path / "grey"
    words = [place / "source", target, "--missing", "bottom:0.5", "--dry-run"]
    more = own if own.exists() else place / folder
    run = halfseen("fit-images", *words, "--unlabelled", more)
    assert run.code == 2
    assert re.search(message, " ".join(run.err.split()))


def test_what_a_listing_leaves_out_is_named_or_stops(place, tmp_path):
    for name in ("source", "target"):
        shutil.copytree(place / name, tmp_path / name)
    (tmp_path / "source" / "empty").mkdir()
    (tmp_path / "target" / "again").symlink_to(tmp_path / "target")
    words = ["fit-images", tmp_path / "source", tmp_path / "target", "--missing", "top:0.5"]
    run = halfseen(*words, "--dry-run", "--json")
    notes = json.loads(run.out)["notes"]
    assert "source/empty has no PNG or JPEG image." in notes[0]
    assert "target/again leads back to a folder that it lies in." in notes[1]
    assert f"Note: {notes[0]}" in run.err
    run = halfseen(*words, "--dry-run", "--strict")
    assert run.code == 2
    assert "source/empty has no" in run.err
    words = ["predict", place / "model", tmp_path / "target", "-o", tmp_path / "s.csv"]
    assert "again leads back" in halfseen(*words).out
    assert "again leads back" in halfseen(*words, "--strict").err


def write_sides(lengths, *folders):
    """Write the same pictures into class folders, their left 0.4 black in one, white in another."""
    random = np.random.default_rng(0)
    for number, length in enumerate(lengths):
        pixels = random.integers(0, 256, (length + 3, length, 3)).astype(np.uint8)
        name = "a dark one" if number % 2 else "ein helles, größeres"
        for folder, level in zip(folders, (0, 255), strict=True):
            pixels[:, : -(-length * 2 // 5)] = level
            (folder / name).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(folder / name / f"{length} {number}.png")
    return folders


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """Two targets of pictures of many sizes that differ in the left 0.4 alone."""
    folders = [tmp_path_factory.mktemp(name) for name in ("black", "white")]
    return write_sides([9, 12, 16, 17, 31, 60, 128] * 2, *folders)


@pytest.fixture(scope="module")
def blind(place, sides, tmp_path_factory):
    """Models of the left 0.4 missing, whose targets differ in that alone."""
    models = []
    for target in sides:
        models.append(tmp_path_factory.mktemp("blind") / "model")
        run = halfseen(
            "fit-images", place / "source", target, "--missing", "left:0.4", "--size", "17", *SET,
            "-o", models[-1],
        )  # fmt: skip
        assert run.code == 0, run.err
    return models


def test_the_hidden_part_of_a_target_teaches_nothing(blind):
    first, second = (load(model) for model in blind)
    assert first.metrics == second.metrics
    assert first.preprocessor == second.preprocessor
    for name, tensor in first.tensors().items():
        assert np.array_equal(tensor, second.tensors()[name]), name


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain"])
def test_the_hidden_part_changes_no_answer(blind, sides, tmp_path, command):
    said, folders = [], [tmp_path / "black", tmp_path / "white"]
    for folder, trained in zip(folders, sides, strict=True):
        shutil.copytree(trained, folder)
    # Smaller than any that was learned from: more is mixed, and counts as missing in none.
    for folder in write_sides([5, 6, 7, 8], *folders):
        words = ["-o", tmp_path / "s.csv", "--force"] if command == "predict" else ["--json"]
        run = halfseen(command, blind[0], folder, *words)
        assert run.code == 0, run.err
        said.append((tmp_path / "s.csv").read_text() if command == "predict" else run.out)
    assert len(said[0]) > 500
    assert said[0] == said[1]


def test_the_hidden_part_of_resized_pictures_does_not_reach_the_graph(blind, sides, tmp_path):
    import onnxruntime

    assert halfseen("export", blind[0], "--onnx", tmp_path / "m.onnx").code == 0
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    answers = []
    for folder in sides:
        shown = []
        for path in sorted(folder.rglob("*.png")):
            with Image.open(path) as image:
                small = image.resize((17, 17), Image.Resampling.BILINEAR)
            shown.append(np.asarray(small).transpose(2, 0, 1))
        answers.append(session.run(None, {"images": np.stack(shown)})[0])
    assert np.array_equal(*answers)


def test_bytes_are_scaled_and_other_numbers_refused(place):
    model = load(place / "model")
    pixels = np.random.default_rng(0).integers(0, 256, (4, *model.blocks.shape), dtype=np.uint8)
    answers = model.predict_proba(pixels)
    scaled = pixels.astype(np.float32) * np.float32(2 / 255) - 1
    assert np.array_equal(answers, model.predict_proba(scaled))
    assert not np.allclose(answers[0], answers[1])
    with pytest.raises(
        InputError, match=r"Image 0 of X holds [\d.]+ in pixel row 0, column 0, and"
    ):
        model.predict_proba(pixels.astype(float))
    scaled[:, model.blocks.mask[None].repeat(3, 0)] = 1e9
    assert np.array_equal(answers, model.predict_proba(scaled)), "what is hidden may be anything"


def test_class_folders_are_evaluated(place, tmp_path):
    run = halfseen("evaluate", place / "model", place / "source", "--json")
    assert run.code == 0, run.err
    found = json.loads(run.out)
    assert found["rows"] == 16
    assert "cut.png" in found["skipped"][0]
    model = load(place / "model")
    folder = open_folder(place / "source", labelled=True)
    kept, pixels = folder.read(model.blocks.shape, lambda error: None, model.preprocessor.hidden)
    assert found["metrics"]["accuracy"]["value"] == pytest.approx(
        (model.predict(pixels) == np.array(kept.labels)).mean()
    )
    shown = halfseen("evaluate", place / "model", place / "source").out
    assert "16 labelled rows" in shown
    assert "a dark one" in shown
    shutil.copytree(place / "source" / "a dark one", tmp_path / "other" / "a grey one")
    run = halfseen("evaluate", place / "model", tmp_path / "other")
    assert "label 'a grey one' is none of the model's classes: a dark one, ein helles" in run.err


def test_the_regions_that_move_an_answer_are_shown(place):
    run = halfseen("explain", place / "model", place / "target", "--rows", "4", "--json")
    assert run.code == 0, run.err
    found = json.loads(run.out)
    assert found["files"] == ["0 é.png", "1 é.png", "2 é.png", "3 é.png"]
    model = load(place / "model")
    seen = ~model.blocks.mask.reshape(8, 2, 8, 2).all(axis=(1, 3))
    assert [[value is not None for value in row] for row in found["importance"]] == seen.tolist()
    _, pixels = open_folder(place / "target" / "0 é.png").read(
        model.blocks.shape, hidden=model.preprocessor.hidden
    )
    covered = pixels.copy()
    covered[:, :, :2, 4:6] = pixels[:, :, ~model.blocks.mask].mean(axis=2)[:, :, None, None]
    best = int(model.predict_proba(pixels).argmax())
    before, after = (logit(model.predict_proba(rows)[0, best]) for rows in (pixels, covered))
    assert found["images"][0]["log_odds"][0][2] == pytest.approx(before - after, abs=1e-4)
    shown = halfseen("explain", place / "model", place / "target", "--rows", "4").out
    assert "Covering a region moves the log-odds by, on average" in shown
    assert "0 é.png: Class " in shown


def test_too_few_images_are_refused(place, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(place / "source", source)
    save(target / "1.png")
    words = ["fit-images", source, target, "--missing", "top:0.5", "--dry-run"]
    assert "target has 1 images that can be read; at least 10" in halfseen(*words).err
    save(source / "rare" / "1.png")
    assert "Class 'rare' of" in halfseen(*words).err


def test_commands_for_tables_say_what_they_take(place, tmp_path):
    run = halfseen("serve", place / "model", "--port", "0")
    assert "holds a model of images, and this takes models of tables" in run.err
    words = ["predict", place / "model", place / "target", "-o", tmp_path / "s.csv"]
    for option in (["--class-share", "a=1"], ["--rename", "a=b"]):
        assert f"{option[0]} is for models of tables" in halfseen(*words, *option).err
