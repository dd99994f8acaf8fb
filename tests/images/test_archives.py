"""Archives that are damaged or hostile: nothing is extracted, and each gets one sentence."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

pytest.importorskip("PIL", reason="images need Pillow")

from image_copies import PACKERS, class_folders, jpeg, pack_tar, pack_zip

from bounded import at_most, within
from hotshot.errors import InputError
from hotshot.images.layouts import open_dataset
from hotshot.images.tree import to_disk


@pytest.mark.parametrize("pack", [pack_tar, pack_zip], ids=["tar", "zip"])
@pytest.mark.parametrize("name", ["../a/1.jpg", "/a/1.jpg", "a/../../1.jpg", "a\\..\\1.jpg", "C:/a/1.jpg"])
def test_names_that_lead_outside_are_refused(tmp_path, pack, name):
    path = pack(tmp_path / "x", class_folders() | {name: jpeg(1)})
    with pytest.raises(InputError, match="a name that leads outside the archive: do not use"):
        open_dataset(path)
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_links_and_devices_in_a_tar_are_ignored(tmp_path):
    path = pack_tar(tmp_path / "x.tar", class_folders())
    with tarfile.open(path, "a") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"ant/{kind.hex()}.jpg")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    assert len(open_dataset(path).splits["all"]) == 6


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"])
def test_a_truncated_archive_is_refused(tmp_path, kind):
    path = PACKERS[kind](tmp_path, class_folders(each=8))
    data = path.read_bytes()
    # A plain tar ends in zeros; the loss of some is none.
    for keep in (100, 512, len(data) // 4, len(data) // 2 // 512 * 512):
        path.write_bytes(data[:keep])
        with pytest.raises(InputError, match="copy or download it again"):
            open_dataset(path)


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path):
    path = pack_tar(tmp_path / "x.tar", class_folders(each=4))
    data = bytearray(path.read_bytes())
    with tarfile.open(path) as archive:
        at = archive.getmembers()[5].offset
    data[at : at + 100] = b"\xff" * 100
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"not a valid tar archive, it is damaged or ends at byte {at}"):
        open_dataset(path)


@pytest.mark.parametrize("pack", [pack_tar, pack_zip], ids=["tar", "zip"])
def test_a_file_twice_is_refused(tmp_path, pack):
    path = pack(tmp_path / "x", class_folders())
    if pack is pack_tar:
        with tarfile.open(path, "a") as archive:
            archive.addfile(tarfile.TarInfo("ant/ant0.jpg"))
    else:
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("ant/ant0.jpg", b"x")
    with pytest.raises(InputError, match=r"holds 'ant/ant0.jpg' twice: pack it again"):
        open_dataset(path)


def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("hotshot.files.opening.ALWAYS_ALLOWED", 2**20)
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(bytes(2**24)))
    with pytest.raises(InputError, match=r"bomb.tar.gz holds data of .* may unpack to .* damaged or hostile"):
        open_dataset(path)


def test_a_full_disk_is_reported_with_the_remedy(tmp_path, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("hotshot.images.tree.tempfile.TemporaryFile", Full)
    path = tmp_path / "x"
    path.write_bytes(b"x")
    with pytest.raises(InputError, match="No space left on device: set TMPDIR"):
        to_disk(io.BytesIO(b"data"), path)


def test_a_zip_member_that_is_not_what_it_announces_is_a_corrupt_image(tmp_path):
    path = pack_zip(tmp_path / "x.zip", {"a/1.jpg": jpeg(1)})
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    message = "x.zip:a/1.jpg is not a readable image, it is not a valid member of its archive"
    with pytest.raises(InputError, match=message):
        open_dataset(path).splits["all"].images[0].read()


def test_other_compressions_and_passwords_are_refused(tmp_path):
    path = pack_zip(tmp_path / "x.zip", class_folders(), zipfile.ZIP_LZMA)
    with pytest.raises(InputError, match="compressed by method 14, or encrypted: pack it as an ordinary zip"):
        open_dataset(path)
    path = pack_zip(tmp_path / "y.zip", {"a/1.jpg": jpeg(1)})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"'a/1.jpg' that is .* or encrypted"):
        open_dataset(path)


@pytest.mark.parametrize("stem", ["x" * 180, "7" * 250], ids=["letters", "digits"])
@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_in_a_tar_are_read(tmp_path, form, stem):
    with tarfile.open(tmp_path / "x.tar", "w", format=form) as archive:
        archive.addfile(tarfile.TarInfo(f"ant/{stem}.jpg"))
    assert open_dataset(tmp_path / "x.tar").splits["all"].images[0].name.endswith(f"ant/{stem}.jpg")


# --- tricks that take time or memory: each in time that grows with the size of the file, counted where it could not


def header(name="ant/1.jpg", size=0, kind=tarfile.REGTYPE):
    """A header of a tar, with a size that may be negative."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def pax(records, kind=b"x"):
    return header("pax", len(records), kind) + records + bytes(-len(records) % 512)


def record(key, value):
    text = b" %s=%s\n" % (key, value)
    length = len(text) + len(str(len(text)))
    return b"%d" % (length + (len(str(length)) > len(str(len(text))))) + text


END = bytes(1024)
TRAPS = {
    "a size that leads back": header("bee/1.jpg") + header(size=-512) + END,
    "a folder of such a size": header("bee/1.jpg") + header(size=-512, kind=b"5") + END,
    "such a size as text": header("bee/1.jpg") + pax(record(b"size", b"-1536")) + header() + END,
    "digits": pax(b"1" * 500_000) + header() + END,
    "a time of digits": pax(record(b"mtime", b"9" * 500_000)) + header() + END,
    "digits for all": pax(b"1" * 500_000, b"g") + header() + END,
    "many values for all": pax(b"".join(record(b"k%d" % i, b"v") for i in range(20_000)), b"g") + header() * 2 + END,
    "headers of headers": pax(record(b"a", b"b")) * 700 + header() + END,
    "a size of digits": pax(record(b"size", b"9" * 200)) + header() + END,
}


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["tar", "tar.gz"])
@pytest.mark.parametrize("trap", TRAPS)
def test_traps_of_tar_are_refused(tmp_path, trap, compress):
    path = tmp_path / "x.tar"
    path.write_bytes(compress(TRAPS[trap]))
    message = "x.tar is not a valid tar archive, .*: copy or download it again"
    with within(60), pytest.raises(InputError, match=message):
        open_dataset(path)


def test_more_members_than_a_file_has_room_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hotshot.images.tree._CHUNK", 2**12)
    data = b"".join(header(f"ant/{i}.jpg") for i in range(300)) + END
    (tmp_path / "x.tar").write_bytes(data)
    assert len(open_dataset(tmp_path / "x.tar").splits["all"]) == 300
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(data))
    with pytest.raises(InputError, match="has more than 256 members, too many for its size"):
        open_dataset(tmp_path / "x.tar.gz")


@pytest.mark.parametrize("pack", [pack_tar, pack_zip], ids=["tar", "zip"])
@pytest.mark.parametrize("depth", [40, 5000, 30_000])
def test_paths_that_are_nested_too_deep_are_refused(tmp_path, pack, depth):
    path = pack(tmp_path / "x", {"a/" * depth + "1.jpg": jpeg(1)})
    with at_most(2**23), pytest.raises(InputError, match=rf"nested {depth + 1} deep: pack the folder of images alone"):
        open_dataset(path)
    path = pack(tmp_path / "y", {"a/" * 20 + "1.jpg": jpeg(1)})
    assert len(open_dataset(path).splits["all"]) == 1
