"""The export formats, and formats that other packages add."""

import json

import pyarrow.parquet
import pytest
from click.testing import CliRunner
from PIL import Image

from galaxy_al.cli.main import cli
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.labelling.exports import EXPORTS
from galaxy_al.labelling.model import labeled_examples
from galaxy_al.labelling.service import Service
from support.commands import init, read_csv, run
from support.plugins import command_with, write_plugin
from support.projects import small_project
from support.servers import served


def test_coco_has_what_its_readers_want(images):
    output = images / "coco.json"
    run("export", images / "project", "--format", "coco", "--output", output)
    content = json.loads(output.read_text())
    by_id = {image["id"]: image for image in content["images"]}
    names = {category["id"]: category["name"] for category in content["categories"]}
    found = {
        by_id[one["image_id"]]["file_name"]: names[one["category_id"]]
        for one in content["annotations"]
    }
    known = {row["id"]: row["label"] for row in read_csv(images / "known.csv")}
    assert found == known
    for image in by_id.values():
        with Image.open(images / "photos" / image["file_name"]) as file:
            assert file.size == (image["width"], image["height"])


def test_label_studio_gets_tasks_with_annotations_and_predictions(images):
    output = images / "tasks.json"
    run("export", images / "project", "--format", "label-studio", "--output", output)
    tasks = json.loads(output.read_text())
    known = {row["id"]: row["label"] for row in read_csv(images / "known.csv")}
    for task in tasks:
        (result,) = task["annotations"][0]["result"]
        assert result["value"]["choices"] == [known[task["data"]["image"]]]
        assert 0 < task["predictions"][0]["score"] <= 1


def test_a_dataset_of_hugging_face_has_images_and_classes(images):
    folder = images / "dataset"
    run("export", images / "project", "--format", "hf", "--output", folder)
    table = pyarrow.parquet.read_table(folder / "data" / "train-00000-of-00001.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["label"] == {"names": ["odd", "even"], "_type": "ClassLabel"}
    assert features["image"] == {"_type": "Image"}
    rows = table.to_pylist()
    known = {row["id"]: row["label"] for row in read_csv(images / "known.csv")}
    assert {row["id"]: ["odd", "even"][row["label"]] for row in rows} == known
    for row in rows:
        assert row["image"]["bytes"] == (images / "photos" / row["id"]).read_bytes()
    assert "not a random sample" in " ".join((folder / "README.md").read_text().split())


def test_an_image_that_vanishes_while_it_is_exported_is_named(images):
    labeled = labeled_examples(images / "project")
    gone = images / "photos" / labeled.entries[0].example
    gone.unlink()
    with pytest.raises(GalaxyError, match=f"Cannot read {gone}: No such file or directory"):
        EXPORTS["hf"].write(labeled, images / "dataset")


@pytest.mark.parametrize("form", ["parquet", "jsonl", "label-studio", "hf"])
def test_embeddings_can_be_exported_in_every_form_but_coco(tmp_path, form):
    project, _ = small_project(tmp_path, labels=None)
    service = Service(project)
    service.label("ann", {"3": "scratch", "4": "fine"})
    service.wait()
    service.close()
    run("export", project.folder, "--format", form, "--output", tmp_path / "out")
    assert (tmp_path / "out").exists()
    refused = run("export", project.folder, "--format", "coco", "--output", "x", fails=True)
    assert str(refused.exception) == "COCO needs images, but the pool contains embeddings."


def test_an_export_writes_over_nothing_that_the_project_needs(embeddings):
    init(embeddings, "--import-labels", embeddings / "known.csv")
    project, pool = embeddings / "project", embeddings / "pool.npy"
    needed = (project, pool, project / "project.toml", project / "labels.sqlite")
    before = pool.read_bytes()
    for output in needed:
        for command in ("export", "train"):
            done = CliRunner().invoke(cli, [command, str(project), "--output", str(output)])
            assert "belongs to the project" in str(done.exception)
    assert pool.read_bytes() == before
    assert run("export", project).output == f"60 labels in {project / 'labels.csv'}\n"
    assert run("export", project).exit_code == 0
    run("export", project, "--output", embeddings / "known.parquet")
    assert pyarrow.parquet.read_table(embeddings / "known.parquet").num_rows == 60


TOY = """
from galaxy_al.labelling.exports import ExportFormat

def write(labeled, path):
    lines = [f"{entry.example} is {entry.label}" for entry in labeled.entries]
    path.write_text("\\n".join(lines))

TOY = ExportFormat("toy", "labels.toy", write, "text/x-toy", ".toy")
"""


@pytest.mark.slow
def test_a_package_adds_a_format_to_the_command_line(embeddings):
    entry_points = {"galaxy_al.exports": {"toy": "TOY", "broken": "MISSING"}}
    plugin = write_plugin(embeddings / "plugin", "toy_format", TOY, entry_points)
    run_with = command_with(plugin, embeddings)
    init(embeddings, "--import-labels", embeddings / "known.csv")
    project, output = embeddings / "project", embeddings / "out.toy"
    done = run_with("export", project, "--output", output)
    assert (done.stdout, done.stderr) == (f"60 labels in {output}\n", "")
    known = read_csv(embeddings / "known.csv")
    assert output.read_text() == "\n".join(f"{row['id']} is {row['label']}" for row in known)
    assert run_with("export", project, "--format", "toy").returncode == 0
    assert (project / "labels.toy").read_bytes() == output.read_bytes()
    assert "|toy" in run_with("export", "--help").stdout
    broken = run_with("export", project, "--format", "broken")
    assert broken.returncode == 1
    assert "'broken' of the package toy_format cannot be loaded" in broken.stderr
    assert len(broken.stderr.splitlines()) == 1


def test_the_server_offers_every_format_that_is_a_file(tmp_path):
    project, _ = small_project(tmp_path)
    with served(project) as server:
        browser = server.browser("ann")
        browser("POST", "/api/label", json={"labels": {"3": "dent"}, "source": "found"})
        get = lambda name: browser("GET", f"/api/export?format={name}")  # noqa: E731
        for name, format in EXPORTS.items():
            if name in ("coco", "hf"):
                assert get(name).status_code == 400
                continue
            answer = get(name)
            assert answer.status_code == 200
            assert answer.headers["content-type"].split(";")[0] == format.media_type
            assert f'filename="{format.file_name}"' in answer.headers["content-disposition"]
        assert get("xml").json() == {
            "error": "Unknown export format 'xml'. "
            "Choose from: coco, csv, hf, jsonl, label-studio, parquet."
        }


def test_the_suffix_decides_unless_a_format_is_given(embeddings):
    init(embeddings, "--import-labels", embeddings / "known.csv")
    project = embeddings / "project"
    run("export", project, "--output", embeddings / "a.jsonl")
    assert json.loads((embeddings / "a.jsonl").read_text().splitlines()[0])["id"] == "0"
    run("export", project, "--output", embeddings / "plain")
    assert len(read_csv(embeddings / "plain")) == 60
    refused = run("export", project, "--output", embeddings / "a.json", fails=True)
    assert isinstance(refused.exception, InvalidArgument)
    assert str(refused.exception).startswith(
        "No export format has the suffix '.json'. Choose a format: csv, "
    )
    run("export", project, "--format", "csv", "--output", embeddings / "a.json")
    assert len(read_csv(embeddings / "a.json")) == 60
