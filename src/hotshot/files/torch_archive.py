"""The zip archive of a torch file: members are views of the file, and nothing is unpacked to the disk."""

from __future__ import annotations

import mmap
import struct
import zipfile
import zlib
from pathlib import Path

from hotshot.errors import InputError
from hotshot.files.limits import check_size
from hotshot.files.names import quoted
from hotshot.files.pickle_records import Unsound

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 0x1

# A buffer, and where in it a member starts and ends.
Place = tuple[bytes | mmap.mmap, int, int]


class Archive:
    """Members of a torch file by name, without the folder that all of them are in."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data = data
        self.path = path
        self.members = self._listed()
        self._places: dict[str, Place] = {}
        self._n_unpacked = 0
        if "constants.pkl" in self.members or any(name.startswith("code/") for name in self.members):
            raise InputError(f"{path} is a TorchScript program, not features: save tensors with torch.save.")
        if "byteorder" in self.members and bytes(self.bytes_of("byteorder")) != b"little":
            raise InputError(f"{path} was written by a big-endian machine: save it on another.")

    def bytes_of(self, name: str) -> memoryview:
        """The bytes of a member."""
        buffer, start, end = self.place_of(name)
        return memoryview(buffer)[start:end]

    def place_of(self, name: str) -> Place:
        """Where the bytes of a member are: in the file, or in memory where the archive was compressed."""
        if name not in self.members:
            raise Unsound(f"it has no member {quoted(name)}")
        if name not in self._places:
            self._places[name] = self._found(self.members[name])
        return self._places[name]

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                listed = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OverflowError, struct.error):
            raise InputError(
                f"{self.path} has no sound list of its contents, as after an unfinished download: "
                "copy or download it again."
            ) from None
        names = [member.filename for member in listed]
        if len(set(names)) < len(names) or any(_leads_astray(name) for name in names):
            raise Unsound("it has members of the same name, or of names that lead out of the archive")
        folders = [name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl")]
        if len(folders) != 1:
            raise Unsound(f"it has {len(folders)} pickles of tensors")
        return {
            member.filename.removeprefix(folders[0]): member
            for member in listed
            if member.filename.startswith(folders[0])
        }

    def _found(self, member: zipfile.ZipInfo) -> Place:
        if member.flag_bits & _ENCRYPTED:
            raise InputError(f"{self.path} is encrypted: save it without a password.")
        start = self._start_of(member)
        end = start + member.compress_size
        if end > len(self.data):
            raise Unsound("it has a member beyond its end")
        place: Place
        if member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size:
            place = self.data, start, end
        elif member.compress_type == zipfile.ZIP_DEFLATED:
            unpacked = self._inflated(memoryview(self.data)[start:end], member.file_size)
            place = unpacked, 0, len(unpacked)
        else:
            raise Unsound("it has a member that is compressed in an unusual way")
        if zlib.crc32(memoryview(place[0])[place[1] : place[2]]) != member.CRC:
            raise Unsound("it has a member with a wrong checksum, or was saved without checksums")
        return place

    def _start_of(self, member: zipfile.ZipInfo) -> int:
        """Where the bytes of a member start: after a header that repeats its name."""
        start = member.header_offset
        if start < 0 or start + _LOCAL_HEADER.size > len(self.data):
            raise Unsound("it has a member beyond its end")
        signature, name, extra = _LOCAL_HEADER.unpack_from(self.data, start)
        if signature != b"PK\x03\x04":
            raise Unsound("it has a member without a header")
        return start + _LOCAL_HEADER.size + name + extra

    def _inflated(self, packed: memoryview, size: int) -> bytes:
        self._n_unpacked += size
        check_size(self.path, self._n_unpacked, "members")
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            unpacked = inflate.decompress(packed, size + 1)
        except zlib.error:
            raise Unsound("it has a member that cannot be unpacked") from None
        if len(unpacked) != size:
            raise Unsound("it has a member of another size than announced")
        return unpacked


def _leads_astray(name: str) -> bool:
    return name.startswith("/") or "\\" in name or ".." in name.split("/")
