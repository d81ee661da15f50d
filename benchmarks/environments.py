"""The peers' environments: one each in the user's cache, created when missing.

They are separate because their requirements conflict: pfl needs attrs below 24, Ray and Flower's jsonschema
need a newer one. All use edgefl's own torch version.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Pins:
    """What an environment has besides torch, NumPy and psutil.

    Attributes:
        requirement: the peer.
        shown: the packages whose versions are printed.
    """

    requirement: str
    shown: tuple[str, ...]


# flwr 1.41.0 brings Ray 2.55.1.
PEERS = {
    "flower": Pins("flwr[simulation]==1.41.0", ("flwr", "ray", "torch", "numpy")),
    "pfl": Pins("pfl[pytorch]==0.6.0", ("pfl", "torch", "numpy")),
}
OWN = ("edgefl-emulator", "torch", "numpy", "simpy")


def python(peer: str) -> Path:
    """A peer's interpreter; creates its environment if there is none.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    torch = version("torch").partition("+")[0]
    pins = PEERS[peer]
    name = f"{pins.requirement.replace('[', '-').replace(']==', '-')}-torch-{torch}"
    folder = _cache() / name
    found = folder / "bin" / "python"
    done = folder / "done"
    if done.exists():
        return found
    print(f"creating {folder} (once)", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    packages = [pins.requirement, f"torch=={torch}", "numpy", "psutil"]
    subprocess.run([found, "-m", "pip", "install", "--quiet", *packages], check=True, stdout=sys.stderr)
    done.touch()
    return found


def versions(interpreter: Path, packages: tuple[str, ...]) -> str:
    """The versions of packages in an environment, as one line."""
    code = "import json, sys; from importlib.metadata import version as v; "
    code += "print(json.dumps({name: v(name) for name in sys.argv[1:]}))"
    ran = subprocess.run([interpreter, "-c", code, *packages], check=True, capture_output=True, text=True)
    return ", ".join(f"{name} {value}" for name, value in json.loads(ran.stdout).items())


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "edgefl" / "benchmarks"
