"""A run is a folder: `run.json` says what was asked, `journal.jsonl` holds what was found, record by record.

The journal is only ever appended to. Each line is a checksum and a JSON document, written at once and forced to the
disk, so that whatever ends the process leaves whole lines and at most one torn one, which is dropped at the next start.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

from hotshot.errors import RunError
from hotshot.files.atomic import has_its_name, locked, write_json
from hotshot.files.objects import read_object
from hotshot.files.source import json_object

REQUEST, JOURNAL = "run.json", "journal.jsonl"


class Journal:
    """The records of one run, open for appending; use it in a `with` statement.

    The folder is made where it is missing. `request` is all that decides the records, as JSON: a folder with another
    one is refused. `about` is what else is worth knowing (versions), kept from the first start.
    """

    def __init__(self, folder: str | Path, request: dict[str, Any], about: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self._request, self._about = request, about
        self._file: BinaryIO
        self.dropped = 0

    def __enter__(self) -> Journal:
        with ExitStack() as stack:
            stack.enter_context(locked(self.folder, "run folder"))
            try:
                self._file = stack.enter_context(open(self.folder / JOURNAL, "a+b", buffering=0))
            except OSError as error:
                raise RunError(f"The run folder {self.folder} cannot be written: {error.strerror}.") from None
            if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                raise RunError(f"{self.folder / JOURNAL} is not a regular file: name another folder.")
            if not check_request(self.folder, self._request):
                if os.fstat(self._file.fileno()).st_size:
                    raise RunError(f"{self.folder} has a journal but no {REQUEST}: name another folder.")
                write_json(self.folder / REQUEST, {**self._about, "request": self._request})
            self._file.seek(0)
            content = self._file.read()
            # A torn line is the last one and has no end.
            self._file.truncate(content.rfind(b"\n") + 1)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._stack:
            if exception == (None, None, None):
                self.check_kept()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every whole record; lines that do not have the checksum they name are counted in `dropped`."""
        self._file.seek(0)
        documents, self.dropped = decode_lines(self._file.read())
        return iter(documents)

    def append(self, record: dict[str, Any]) -> None:
        """Write one record to the disk; where it does not fit, what was written of it is taken back."""
        self.check_kept()
        line = encode(record)
        end = self._file.seek(0, os.SEEK_END)
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(0, "no space left on the device")
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            raise RunError(
                f"The run folder {self.folder} cannot be written ({error.strerror}), finished tasks are kept: make "
                "room and rerun the command to resume."
            ) from None

    def check_kept(self) -> None:
        """Raise where the journal is in the folder no more: nothing that is written to it would be found again."""
        if not has_its_name(self._file):
            raise RunError(
                f"The run folder {self.folder} was deleted or moved while the run was going on, and nothing of it is "
                "kept there: rerun the command."
            )


def check_request(folder: Path, request: dict[str, Any]) -> bool:
    """Whether a folder holds this request; one of another request is refused."""
    path = folder / REQUEST
    if not path.exists():
        return False
    before = (read_object(path) or {}).get("request")
    if not isinstance(before, dict):
        raise RunError(f"{path} cannot be read as a request: name another folder.")
    wanted = json.loads(json.dumps(request))
    differing = [key for key in sorted({*before, *wanted}) if before.get(key) != wanted.get(key)]
    if differing:
        raise RunError(
            f"The run folder {folder} holds another request (it differs in {', '.join(differing)}): "
            "name another folder, or repeat that request to resume it."
        )
    return True


def encode(record: dict[str, Any]) -> bytes:
    """One line: the CRC-32 of the document in hexadecimal, a space, the document."""
    document = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(document), document)


def decode_lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """The documents of a journal, and the number of lines that are not what was written."""
    found = [decode(line) for line in content.splitlines()]
    return [document for document in found if document is not None], found.count(None)


def decode(line: bytes) -> dict[str, Any] | None:
    """The document of a line, or None where the line is not what was written."""
    checksum, _, document = line.partition(b" ")
    return json_object(document) if checksum == b"%08x" % zlib.crc32(document) else None
