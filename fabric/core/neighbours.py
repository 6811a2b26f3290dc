"""What may not be installed beside this project."""

from importlib import metadata

from fabric.core.errors import UnsupportedError


def refuse_the_ssh_library() -> None:
    """Refuse to start beside the SSH library, whose import name is ours too.

    Raises: UnsupportedError.
    """
    try:
        version = metadata.version("fabric")
    except metadata.PackageNotFoundError:
        return
    raise UnsupportedError(
        f"the SSH library 'fabric' {version} is installed in this environment; its import name "
        "is also pty-fabric's, and Python would mix the two",
        hint="use an environment of its own for pty-fabric (make env), or uninstall 'fabric'",
    )
