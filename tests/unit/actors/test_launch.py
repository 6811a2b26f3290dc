from importlib import metadata

import pytest

from fabric.actors import launch
from fabric.core.errors import InvalidRequestError


def test_the_ssh_library_of_the_same_name_is_refused_with_a_sentence(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: "3.2.2")
    with pytest.raises(InvalidRequestError, match=r"SSH library fabric 3\.2\.2"):
        launch.refuse_the_ssh_library()


def test_an_environment_without_it_passes():
    launch.refuse_the_ssh_library()
