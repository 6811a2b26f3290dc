from importlib import metadata

import pytest

from fabric.core.errors import UnsupportedError
from fabric.core.neighbours import refuse_the_ssh_library


def test_the_ssh_library_of_the_same_name_is_refused_with_a_sentence(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: "3.2.3")
    with pytest.raises(UnsupportedError, match=r"SSH library 'fabric' 3\.2\.3"):
        refuse_the_ssh_library()


def test_an_environment_without_it_passes():
    refuse_the_ssh_library()
