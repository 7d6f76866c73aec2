"""A user's own pools, in every form, good and bad."""

import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from galaxy_al import GalaxyError
from galaxy_al.cli.main import cli
from galaxy_al.data import import_labels, load_pool
from galaxy_al.errors import UnreadableImage


def write_image(path, color=(10, 20, 30), size=(5, 7), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).convert(mode).save(path)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    write_image(folder / "b.png")
    write_image(folder / "deep/er/a.JPG", size=(300, 20))
    write_image(folder / "grey.png", mode="L")
    write_image(folder / ".hidden.png")
    (folder / "notes.txt").write_text("no image")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8 this is no jpeg")
    return folder


def test_a_folder_of_images_is_nested_and_its_ids_are_paths_in_it(photos):
    pool = load_pool(photos)
    assert pool.ids == ["b.png", "broken.jpg", "deep/er/a.JPG", "grey.png"]
    assert pool.kind == "images"
    np.testing.assert_array_equal(pool.items[0], np.full((7, 5, 3), (10, 20, 30)))
    assert pool.items[2].shape == (20, 300, 3)
    assert pool.items[3].shape == (7, 5, 3)
    assert (pool.labels == -1).all()
    assert load_pool(photos).ids == pool.ids


def test_broken_images_are_reported_and_can_be_left_out(photos):
    pool = load_pool(photos)
    with pytest.raises(UnreadableImage, match=r"Cannot read .*broken.jpg as an image"):
        pool.items[1]
    assert list(pool.problems()) == [1]
    rest = pool.take(np.array([0, 2, 3]))
    assert rest.ids == ["b.png", "deep/er/a.JPG", "grey.png"]
    assert rest.problems() == {}
    assert rest.items[1].shape == (20, 300, 3)


def test_a_picture_that_was_taken_sideways_stands_upright(tmp_path):
    image = Image.new("RGB", (8, 4))
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "a.jpg", exif=exif)
    assert load_pool(tmp_path).items[0].shape == (8, 4, 3)


def test_the_content_changes_with_the_files_and_only_with_them(photos):
    before = load_pool(photos).content
    assert load_pool(photos).content == before
    write_image(photos / "b.png", size=(6, 6))
    assert load_pool(photos).content != before


def test_a_folder_without_images_is_refused(tmp_path):
    (tmp_path / "a.txt").touch()
    with pytest.raises(GalaxyError, match="holds no image"):
        load_pool(tmp_path)
    with pytest.raises(GalaxyError, match=r"There is no .*nowhere"):
        load_pool(tmp_path / "nowhere")


def write_parquet(path, rows):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def write_csv(path, rows):
    import csv

    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


WRITERS = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}
every_table = pytest.mark.parametrize("suffix", sorted(WRITERS))


@every_table
def test_texts_with_ids_and_labels(tmp_path, suffix):
    rows = [
        {"id": "m1", "text": 'Hello, "you"\nthere', "folder": "ham"},
        {"id": "m2", "text": "grüße", "folder": ""},
        {"id": "m3", "text": "buy", "folder": "spam"},
        {"id": "m4", "text": "hi", "folder": "ham"},
    ]
    path = tmp_path / f"mails{suffix}"
    WRITERS[suffix](path, rows)
    pool = load_pool(path, label_column="folder")
    assert (pool.kind, pool.ids) == ("texts", ["m1", "m2", "m3", "m4"])
    assert list(pool.items) == [row["text"] for row in rows]
    assert pool.classes == ("spam", "ham")  # the most frequent one last
    assert pool.labels.tolist() == [1, -1, 0, 1]
    chosen = load_pool(path, label_column="folder", classes=["ham", "spam", "other"])
    assert chosen.labels.tolist() == [0, -1, 1, 0]


@every_table
def test_rows_without_ids_are_numbered_and_any_column_can_be_taken(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    WRITERS[suffix](path, [{"body": "one", "n": 1}, {"body": "two", "n": 2}])
    pool = load_pool(path, kind="texts", column="body")
    assert (pool.ids, list(pool.items)) == (["0", "1"], ["one", "two"])
    assert load_pool(path, kind="texts", column="body", id_column="n").ids == ["1", "2"]


@every_table
def test_a_list_of_images(tmp_path, photos, suffix):
    path = tmp_path / f"list{suffix}"
    WRITERS[suffix](path, [{"image": "photos/b.png"}, {"image": "photos/gone.png"}])
    pool = load_pool(path)
    assert pool.kind == "images"
    assert pool.items[0].shape == (7, 5, 3)
    assert list(pool.problems()) == [1]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_vectors_in_a_table(tmp_path, suffix):
    path = tmp_path / f"v{suffix}"
    WRITERS[suffix](path, [{"embedding": [1.0, 2.0]}, {"embedding": [3.0, 4.5]}])
    pool = load_pool(path)
    assert pool.kind == "embeddings"
    np.testing.assert_array_equal(pool.items, [[1, 2], [3, 4.5]])


def test_arrays_are_mapped_and_not_read(tmp_path):
    table = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    np.save(tmp_path / "e.npy", table)
    pool = load_pool(tmp_path / "e.npy")
    assert isinstance(pool.items, np.memmap)
    np.testing.assert_array_equal(pool.items, table)
    assert pool.ids[-1] == "19"


def test_an_archive_of_arrays_may_have_ids_labels_and_classes(tmp_path):
    table = np.ones((3, 2))
    np.savez(tmp_path / "a.npz", embeddings=table, ids=["x", "y", "z"], labels=[0, -1, 1])
    pool = load_pool(tmp_path / "a.npz")
    assert (pool.ids, pool.labels.tolist()) == (["x", "y", "z"], [0, -1, 1])
    assert pool.classes == ("0", "1")
    np.savez(tmp_path / "b.npz", table)
    assert load_pool(tmp_path / "b.npz").items.shape == (3, 2)
    np.savez(tmp_path / "c.npz", a=table, b=table)
    with pytest.raises(GalaxyError, match=r"c.npz has no array 'embeddings', but: a, b"):
        load_pool(tmp_path / "c.npz")


def test_labels_can_be_imported_for_any_pool(photos, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\ngrey.png,cat\nb.png,dog\ndeep/er/a.JPG,dog\n")
    pool = import_labels(load_pool(photos), path)
    assert pool.classes == ("cat", "dog")
    assert pool.labels.tolist() == [1, -1, 1, 0]
    path.write_text("id,label\nbroken.jpg,cat\nb.png,\n")
    more = import_labels(pool, path)
    assert more.labels.tolist() == [1, 0, 1, 0]
    path.write_text("id,label\nbroken.jpg,cow\n")
    with pytest.raises(GalaxyError, match=r"labels.csv, line 2: unknown class 'cow'.*cat, dog"):
        import_labels(pool, path)
    path.write_text("id,label\nnowhere.jpg,cat\n")
    with pytest.raises(GalaxyError, match=r"line 2: the pool has no example 'nowhere.jpg'"):
        import_labels(pool, path)
    path.write_text("id,label\nb.png,cat\nb.png,dog\n")
    with pytest.raises(GalaxyError, match=r"line 3: 'b.png' occurs a second time"):
        import_labels(pool, path)


BAD_TABLES = {
    "a column that is not there": ("a.csv", "id,body\n1,x\n", "has none of the columns text, "),
    "two rows with one id": ("a.csv", "id,text\n1,x\n2,y\n1,z\n", r"line 4: the id '1' .* line 2"),
    "a row that is too short": ("a.csv", "id,text\n1,x\n2\n", "line 3 has 1 fields, the header 2"),
    "an empty text": ("a.csv", 'id,text\n1,"a\nb"\n2,\n', "line 4: the column 'text' is empty"),
    "no rows": ("a.csv", "id,text\n", "a.csv has no rows"),
    "nothing": ("a.csv", "", "a.csv has no rows"),
    "a column twice": ("a.csv", "text,text\n1,2\n", "two columns of the same name"),
    "not JSON": ("a.jsonl", '{"text": "x"}\n\n{"text": \n', "line 3 is not JSON"),
    "not an object": ("a.jsonl", "[1, 2]\n", "line 1 is not a JSON object"),
    "not Parquet": ("a.parquet", "PAR1 no", "Cannot read .*a.parquet"),
    "not an array": ("a.npy", "no array", "Cannot read .*a.npy"),
    "not an archive": ("a.npz", "PK no zip", "Cannot read .*a.npz"),
    "vectors of two lengths": (
        "a.jsonl",
        '{"vector": [1, 2]}\n{"vector": [1]}\n',
        "line 2: 'vector' has 1 numbers, the rows before have 2",
    ),
    "no vector": ("a.jsonl", '{"vector": "x"}\n', "line 1: 'vector' is not a list of numbers"),
    "an unknown suffix": ("a.xls", "x", "is neither a folder of images nor one of"),
}


@pytest.mark.parametrize("name", sorted(BAD_TABLES))
def test_bad_files_are_one_line_that_names_the_file_and_the_row(tmp_path, name):
    file_name, content, message = BAD_TABLES[name]
    (tmp_path / file_name).write_text(content)
    with pytest.raises(GalaxyError, match=message) as raised:
        load_pool(tmp_path / file_name)
    assert file_name in str(raised.value)
    assert "\n" not in str(raised.value)


def test_text_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\nGr\xfc\xdfe\n")
    with pytest.raises(GalaxyError, match=r"a.csv, line 2 is not UTF-8"):
        load_pool(tmp_path / "a.csv")


def test_wrong_columns_and_classes_are_named_with_what_there_is(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text,label\n1,x,cat\n2,y,dgo\n")
    with pytest.raises(
        GalaxyError, match=r"has no column 'lable'. Its columns are: id, text, label"
    ):
        load_pool(path, label_column="lable")
    with pytest.raises(
        GalaxyError, match=r"line 3: unknown class 'dgo'. The classes are: cat, dog"
    ):
        load_pool(path, label_column="label", classes=["cat", "dog"])
    with pytest.raises(
        GalaxyError, match=r"What does the column 'label' of .* hold\? Kinds: texts, images, "
    ):
        load_pool(path, column="label")
    with pytest.raises(GalaxyError, match="has no columns; import_labels takes one"):
        load_pool(tmp_path, label_column="label")


@pytest.mark.parametrize("mode", ["I;16", "F", "RGBA", "LA", "P"])
def test_deep_and_transparent_images_keep_what_they_show(tmp_path, mode):
    from galaxy_al.data.modalities import ImageFiles

    ramp = np.tile(np.linspace(0, 1, 64), (8, 1))
    path = tmp_path / ("a.tif" if mode == "F" else "a.png")
    if mode == "I;16":
        Image.fromarray((ramp * 65535).astype(np.uint16)).save(path)
    elif mode == "F":
        Image.fromarray(ramp.astype(np.float32)).save(path)
    else:  # black, the more transparent the further to the right
        alpha = 255 - (ramp * 255).astype(np.uint8)
        black = np.zeros((8, 64, 4), dtype=np.uint8)
        black[..., 3] = alpha
        image = Image.fromarray(black)
        image = image.convert(mode) if mode == "LA" else image
        (image.quantize() if mode == "P" else image).save(path)
    found = ImageFiles([path])[0]
    assert found.shape == (8, 64, 3)
    # A palette of Pillow has eight steps of transparency.
    np.testing.assert_allclose(found[..., 1] / 255, ramp, atol=0.07 if mode == "P" else 0.02)


def test_a_file_name_that_is_not_unicode_does_no_harm(tmp_path):
    (tmp_path / "photos").mkdir()
    name = os.fsencode(tmp_path / "photos") + b"/caf\xe9.png"
    Image.new("RGB", (3, 3)).save(tmp_path / "photos" / "a.png")
    with open(name, "wb") as file:
        file.write((tmp_path / "photos" / "a.png").read_bytes())
    pool = load_pool(tmp_path / "photos")
    assert pool.ids == ["a.png", "caf\\xe9.png"]
    assert pool.items[1].shape == (3, 3, 3)
    "".join(pool.ids).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('id,text\n1,"hello\n2,world\n', r"p.csv, line 3: unexpected end of data"),
        ("id,text\n1,a\n1,b\n", r"p.csv, line 3: the id '1' is already that of line 2"),
    ],
)
def test_a_csv_that_is_broken_is_not_read_in_part(tmp_path, content, message):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(GalaxyError, match=message):
        load_pool(tmp_path / "p.csv")


def test_a_text_may_be_a_whole_book(tmp_path):
    (tmp_path / "p.csv").write_text("text\n" + "x" * 300_000 + "\n")
    assert len(load_pool(tmp_path / "p.csv").items[0]) == 300_000


def test_labels_of_an_array_are_numbers_or_names(tmp_path):
    path = tmp_path / "a.npz"
    table = np.eye(3)
    np.savez(path, embeddings=table, labels=["cat", "", "dog"], ids=np.array([b"x", b"y", b"z"]))
    pool = load_pool(path)
    assert (pool.classes, pool.labels.tolist()) == (("cat", "dog"), [0, -1, 1])
    assert pool.ids == ["x", "y", "z"]
    for wrong, message in (
        ({"labels": [0.0, 1.7, 1]}, "a.npz: labels must be whole numbers or names"),
        ({"labels": [0, -5, 1]}, "a.npz: The label of example 1 is -5"),
        ({"labels": [0, 1]}, "a.npz: A pool must have as many ids, items and labels"),
        ({"ids": ["a", "b", "a"]}, "a.npz: Two examples have the id 'a'"),
        ({"classes": ["x", "x"]}, "a.npz: Two classes are called 'x'"),
    ):
        np.savez(path, embeddings=table, **wrong)
        with pytest.raises(GalaxyError, match=message):
            load_pool(path)


def test_kinds_and_classes_that_make_no_sense_are_refused(tmp_path, photos):
    (tmp_path / "p.csv").write_text("text\na\n")
    with pytest.raises(ValueError, match=r"Unknown kind 'foo'. Choose from: embeddings"):
        load_pool(tmp_path / "p.csv", kind="foo", column="text")
    with pytest.raises(GalaxyError, match="holds images, not texts"):
        load_pool(photos, kind="texts")
    with pytest.raises(ValueError, match="classes must be a list of names, got the text 'xyz'"):
        load_pool(photos, classes="xyz")
    with pytest.raises(ValueError, match="Two classes are called 'x'"):
        load_pool(photos, classes=["x", "y", "x"])


def test_what_pandas_made_of_labels_and_ids_is_whole_again(tmp_path):
    lines = ['{"id": 1.0, "text": "a", "label": 0.0}', '{"id": 2.0, "text": "b", "label": NaN}']
    (tmp_path / "p.jsonl").write_text("\n".join([*lines, '{"id": 3, "text": "c", "label": 1.0}']))
    pool = load_pool(tmp_path / "p.jsonl", label_column="label")
    assert (pool.ids, pool.classes) == (["1", "2", "3"], ("0", "1"))
    assert pool.labels.tolist() == [0, -1, 1]


def test_a_row_that_is_no_vector_is_named(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"embedding": [1, 2]}\n{"embedding": [[1, 2], [3]]}\n')
    with pytest.raises(GalaxyError, match=r"p.jsonl, line 2: 'embedding' is not a list of numbers"):
        load_pool(tmp_path / "p.jsonl")


@pytest.mark.parametrize("is_fixed", [True, False])
def test_vectors_of_a_parquet_file_stay_as_they_are(tmp_path, is_fixed):
    import pyarrow
    import pyarrow.parquet

    vectors = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    kind = pyarrow.list_(pyarrow.float32(), 7 if is_fixed else -1)
    table = pyarrow.table({"embedding": pyarrow.array(vectors.tolist(), kind)})
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet", row_group_size=20)
    found = load_pool(tmp_path / "p.parquet").items
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, vectors)


def test_the_command_tells_which_embeddings_are_not_finite(tmp_path):
    table = np.zeros((4, 2))
    table[2, 1] = np.nan
    np.save(tmp_path / "a.npy", table)
    done = CliRunner().invoke(cli, ["data", "check", str(tmp_path / "a.npy")])
    assert "The embedding of '2' is not finite" in done.output


def test_a_large_jpeg_may_be_read_smaller_but_no_smaller_than_asked(tmp_path):
    from galaxy_al.data.modalities import ImageFiles

    y, x = np.mgrid[:600, :900]
    picture = np.stack([x / 900, y / 600, 0 * x], axis=2) * 255
    Image.fromarray(picture.astype(np.uint8)).save(tmp_path / "a.jpg", quality=95)
    files = ImageFiles([tmp_path / "a.jpg"])
    assert files[0].shape == (600, 900, 3)
    assert files.read(0, 1000).shape == (600, 900, 3)
    small = files.read(0, 100)
    assert 100 <= min(small.shape[:2]) < 300
    whole = np.asarray(Image.fromarray(files[0]).resize(small.shape[1::-1]), dtype=float)
    assert np.abs(whole - small).mean() < 3


def test_the_command_tells_what_is_in_a_pool(photos, tmp_path):
    done = CliRunner().invoke(cli, ["data", "check", str(photos)])
    assert "4 images, the first 'b.png', the last 'grey.png'" in done.output
    assert "broken.jpg as an image" in done.output
    assert "Cannot be used: 1 of 4 examples" in done.output
    (tmp_path / "a.csv").write_text("text,label\nx,cat\ny,\nz,dog\nw,dog\n")
    done = CliRunner().invoke(
        cli, ["data", "check", str(tmp_path / "a.csv"), "--label-column", "label"]
    )
    assert [line.split() for line in done.output.splitlines()[1:]] == [
        ["1", "cat"],
        ["2", "dog"],
        ["1", "without", "a", "label"],
    ]


def test_the_command_lists_the_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("GALAXY_AL_HOME", str(tmp_path))
    (tmp_path / "train_32x32.mat").touch()
    lines = CliRunner().invoke(cli, ["data", "list"]).output.splitlines()
    rows = {line.split()[0]: line.split() for line in lines[1:9]}
    assert rows["cifar100-10"][:6] == ["cifar100-10", "10", "4,500", "45,500", "0.0110", "not"]
    assert rows["svhn-3"] == ["svhn-3", "3", "18,809", "54,448", "0.2546", "downloaded"]
    assert str(tmp_path) in lines[-1]
