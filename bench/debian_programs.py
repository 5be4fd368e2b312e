"""Programs of Debian packages, unpacked into a private folder by name: nothing is installed, no daemon starts, no root is needed.
Only for programs whose libraries are there or among the packages named."""

import os
import pathlib
import shutil
import subprocess


class Missing(Exception):
    """The text says what to install."""


def library_path(folder):
    """Environment in which the unpacked programs find their unpacked libraries."""
    libraries = [str(path) for path in sorted((folder / "root/usr/lib").glob("*-linux-gnu"))]
    return {"LD_LIBRARY_PATH": ":".join(libraries + [path for path in [os.environ.get("LD_LIBRARY_PATH")] if path])}


def find(program, packages, folder):
    """The path of `program`: the machine's own, or the one of `packages`, fetched on first use."""
    if own := shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
        return own
    for unpacked in (folder / "root").glob(f"usr/*bin/{program}"):
        return str(unpacked)
    (folder / "packages").mkdir(parents=True, exist_ok=True)
    download = ["apt-get", "download", *packages]
    fetched = subprocess.run(download, cwd=folder / "packages", capture_output=True, text=True, check=False)
    if fetched.returncode != 0 and os.geteuid() == 0:  # a fresh machine has no package lists yet
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        fetched = subprocess.run(download, cwd=folder / "packages", capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        raise Missing(f"{program} could not be fetched; install it with: apt-get install {packages[0]}")
    for package in packages:
        for file in (folder / "packages").glob(f"{package}_*.deb"):
            subprocess.run(["dpkg", "-x", file, folder / "root"], check=True)
    for unpacked in (folder / "root").glob(f"usr/*bin/{program}"):
        return str(unpacked)
    raise Missing(f"{program} is not in {' '.join(packages)}; install it by hand")


def work_folder(root, word):
    folder = pathlib.Path(word) if word else root / ".deps" / "gateways"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
