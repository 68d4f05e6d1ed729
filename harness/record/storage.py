"""Whole files in a folder, on a disk or in an object store: a file is complete or absent."""

from __future__ import annotations

import errno
import os
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from harness.errors import InputError

OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})
"""Kinds of pyarrow file systems where an object appears when its upload is closed, and only then."""
ASIDE = ".tmp-"
"""What the name of a file begins with that is not complete yet."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that need not exist yet; `url` is how the user named it, a path or a pyarrow.fs URL."""

    url: str
    filesystem: fs.FileSystem
    path: str
    """The folder as `filesystem` names it."""

    @classmethod
    def at(cls, location: str | os.PathLike[str]) -> Folder:
        """Raises InputError if it is a URL of an unknown or unusable file system."""
        url = os.fspath(location)
        if "://" not in url:
            return cls(url, fs.LocalFileSystem(), os.path.abspath(url))
        try:
            filesystem, path = fs.FileSystem.from_uri(url)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise InputError(
                f"{url} cannot be used as a place for results: {error}; give a path or a file://, s3:// or gs:// URL."
            ) from error
        return cls(url, filesystem, path)

    def child(self, name: str) -> Folder:
        """The folder `name` inside this one."""
        return Folder(self.name_of(name), self.filesystem, f"{self.path}/{name}")

    def name_of(self, name: str) -> str:
        """The file or folder `name` as a user would write it."""
        if "://" not in self.url:
            return os.path.join(self.url, name)
        # A URL can end in options of the file system: s3://bucket/runs?endpoint_override=...
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))

    def make_new(self) -> None:
        """Make this folder and those above it. Raises OSError; FileExistsError if it is there already."""
        if isinstance(self.filesystem, fs.LocalFileSystem):
            above = os.path.dirname(self.path)
            if os.path.isfile(above):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), above)
            os.makedirs(above, exist_ok=True)
            os.mkdir(self.path)
            return
        if self.filesystem.get_file_info(self.path).type != fs.FileType.NotFound:
            raise FileExistsError(f"{self.url} exists")
        self.filesystem.create_dir(self.path, recursive=True)

    def exists(self, name: str) -> bool:
        return bool(self.filesystem.get_file_info(f"{self.path}/{name}").type == fs.FileType.File)

    def files(self, folder: str) -> list[str]:
        """Names ("folder/file") of the complete files in a sub-folder, in order; none if there is no such folder."""
        return [f"{folder}/{info.base_name}" for info in self._list(folder) if info.type == fs.FileType.File]

    def half_written(self, folder: str) -> list[str]:
        """Names ("folder/file") of the files in a sub-folder that a `write` began and did not end, in order."""
        selector = fs.FileSelector(f"{self.path}/{folder}".rstrip("/"), allow_not_found=True)
        names = [str(info.base_name) for info in self.filesystem.get_file_info(selector)]
        return sorted(f"{folder}/{name}".lstrip("/") for name in names if name.startswith(ASIDE))

    def folders(self) -> list[str]:
        """Names of the folders in this one, in order; none if it does not exist."""
        return [info.base_name for info in self._list("") if info.type == fs.FileType.Directory]

    def _list(self, folder: str) -> list[fs.FileInfo]:
        selector = fs.FileSelector(f"{self.path}/{folder}".rstrip("/"), allow_not_found=True)
        infos = [info for info in self.filesystem.get_file_info(selector) if not info.base_name.startswith(".")]
        return sorted(infos, key=lambda info: str(info.base_name))

    def read(self, name: str) -> bytes:
        """Raises OSError; FileNotFoundError if it is not there."""
        with self.filesystem.open_input_stream(f"{self.path}/{name}") as stream:
            return bytes(stream.read())

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        """Put a whole file in place, or replace it; readers see all of it or none. `name` may contain folders.

        On a disk it is written aside under a name that begins with a dot, synced, then renamed. Raises OSError.
        """
        path = f"{self.path}/{name}"
        if self.filesystem.type_name in OBJECT_STORES:
            self._put(path, data)
            return
        folder, _, base_name = path.rpartition("/")
        self.filesystem.create_dir(folder, recursive=True)
        # Unlike the file it becomes, it has no suffix: no pattern such as *.parquet finds it.
        aside = f"{folder}/{ASIDE}{base_name.partition('.')[0]}-{secrets.token_hex(4)}"
        try:
            self._put(aside, data)
            self._sync(aside)
            self.filesystem.move(aside, path)
        except OSError:
            if self.filesystem.get_file_info(aside).type == fs.FileType.File:
                self.filesystem.delete_file(aside)
            raise

    def _put(self, path: str, data: bytes | pa.Buffer) -> None:
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(data)

    def _sync(self, path: str) -> None:
        """Without it a power cut can leave a file that has its name but not its bytes."""
        if isinstance(self.filesystem, fs.LocalFileSystem):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
