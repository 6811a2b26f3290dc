"""The import names `fabric` and `workers` are common words: make sure they are ours."""

import importlib
import json
import tomllib
from importlib import metadata

import pytest

from tests.support.paths import PACKAGES, ROOT


@pytest.mark.parametrize("name", PACKAGES)
def test_package_comes_from_this_checkout(name):
    module = importlib.import_module(name)
    assert module.__file__ == str(ROOT / name / "__init__.py")


def test_the_ssh_library_of_the_same_import_name_is_absent():
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("fabric")


def test_proto_is_no_package():
    """The distribution proto-plus owns the import name; an __init__.py here would shadow it."""
    assert not (ROOT / "proto" / "__init__.py").exists()


def test_distribution_is_private_and_refuses_the_ssh_library():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["name"] == "pty-fabric"
    assert "Private :: Do Not Upload" in project["project"]["classifiers"]
    assert "fabric<0" in project["tool"]["uv"]["constraint-dependencies"]


def test_lock_has_hashes_and_names_no_index():
    lock = (ROOT / "requirements.lock").read_text()
    pins = [line for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert pins
    assert all(line.rstrip().endswith("\\") for line in pins), "a pin has no hash"
    assert "http://" not in lock
    assert "https://" not in lock
    assert "--index" not in lock


def test_the_pages_lock_has_hashes_and_names_no_registry():
    lock = json.loads((ROOT / "fabric/web/ui/package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert all("integrity" in entry for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())


def test_the_built_page_ships_and_its_sources_do_not():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert wheel["targets"]["wheel"]["artifacts"] == ["fabric/web/static"]
    assert wheel["targets"]["wheel"]["exclude"] == ["fabric/web/ui"]
