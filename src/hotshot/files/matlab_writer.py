"""Writing `.mat` files of MATLAB 5 to 7.2: X, y, and the names that y counts from 1 where labels are text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import replace_file
from hotshot.files.content import Content

# Sizes are 32-bit numbers in this format.
_LARGEST = 2**31 - 1


def write_matlab(path: Path, content: Content) -> None:
    """Write all at once, for want of a stream in this format."""
    from scipy.io import savemat
    from scipy.io.matlab import MatWriteError

    if content.dtype == np.float16:
        raise ParameterError(f"{path} cannot hold float16, which MATLAB lacks: pass dtype='float32'.")
    n_samples, width = content.shape
    if n_samples * width * content.dtype.itemsize > _LARGEST:
        raise InputError(f"{path} cannot hold more than 2 GiB, the most of its format: write .safetensors instead.")
    content.refuse_nul(path)
    variables: dict[str, Any] = {}
    if content.label_type == "str":
        variables["y"] = content.codes + 1
        names = np.empty((len(content.classes), 1), dtype=object)
        names[:, 0] = content.classes
        variables["names"] = names
    else:
        variables["y"] = content.class_array[content.codes]
    # MATLAB's numbers are all of one type: a reader must be told that 1.0 was no integer.
    variables["about"] = json.dumps({**content.about, "label_type": content.label_type})
    with replace_file(path) as file:
        variables["X"] = np.concatenate(list(content.blocks()))
        try:
            savemat(file, variables, do_compression=False, oned_as="column")
        except (MatWriteError, ValueError, TypeError) as error:
            # ValueError: a name that is no valid text.
            raise InputError(f"{path} cannot hold these labels: {error}.") from None
