"""What a message says of an error."""

import errno
import os

import pytest

from tres_scrapy.url.message import plainly, reason


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOENT, "there is no such file or folder"),
        (errno.EEXIST, "a file is where a folder should be"),
        (errno.EACCES, "you may not read or write it"),
        (errno.EISDIR, "it is a folder, not a file"),
        (errno.ENOTDIR, "a part of its path is a file, not a folder"),
        (errno.ENOSPC, "no space left on device"),
    ],
)
def test_error_of_a_file_is_plain(number, said):
    error = OSError(number, os.strerror(number), "soup.txt")
    assert plainly(error) == reason(error) == f"'soup.txt': {said}"
    assert plainly(error, named=True) == said


def test_other_errors_keep_their_message():
    assert plainly(ValueError("line 3 is empty")) == "line 3 is empty"
    assert plainly(OSError("the record is gone")) == "the record is gone"
    several = OSError("Multiple exceptions: [Errno 111] refused, [Errno -2] unknown")
    assert plainly(several) == "Multiple exceptions: refused, unknown"
