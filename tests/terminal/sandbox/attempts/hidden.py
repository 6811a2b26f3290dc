"""Reach secrets, sockets, memory and keys."""

# Plain os calls are what is tried here:
# ruff: noqa: PTH104

import ctypes
import os
import socket

from tests.terminal.sandbox.attempts.tools import LIBC, attempt, call, content


@attempt
def read_a_masked_file_in_a_folder(w):
    return content(w.secret)


@attempt
def read_a_masked_file(w):
    return content(w.key)


@attempt
def read_a_masked_file_through_a_link(w):
    return content(f"{w.workspace}/secret-link")


@attempt
def read_a_masked_file_by_proc_self_root(w):
    return content(f"/proc/self/root{w.secret}")


@attempt
def read_a_masked_file_by_proc_1_root(w):
    return content(f"/proc/1/root{w.secret}")


@attempt
def read_a_masked_file_by_hard_link(w):
    os.link(w.key, f"{w.workspace}/key")
    return content(f"{w.workspace}/key")


@attempt
def move_a_masked_folder_into_the_workspace(w):
    os.rename(w.state, f"{w.workspace}/state")
    return content(f"{w.workspace}/state/token")


@attempt
def see_in_the_own_environment(w):
    return [name for name, value in os.environ.items() if "canary" in value] or None


def connected(address):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
    return f"connected to {address!r}"


@attempt
def connect_to_a_masked_socket(w):
    return connected(w.shim_socket)


@attempt
def connect_to_a_masked_socket_relatively(w):
    os.chdir(w.state)
    return connected("shim.s")


@attempt
def connect_to_another_programs_socket(w):
    return connected(w.other_socket)


@attempt
def connect_to_an_abstract_socket(w):
    return connected("\0" + w.name)


@attempt
def connect_to_a_daemon(w):
    known = ("/run/docker.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket")
    for path in known:
        try:
            return connected(path)
        except OSError:
            continue
    return None


@attempt
def write_shared_memory_of_another(w):
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(call("shmget", w.memory, 4, 0), None, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "shmat")
    ctypes.memmove(address, b"bad!", 4)
    return "wrote"


@attempt
def read_a_key_of_the_session_keyring(w):
    return f"found key {call('keyctl', 10, -3, b'user', w.name.encode(), 0)}"


@attempt
def read_a_key_of_the_user_keyring(w):
    return f"found key {call('keyctl', 10, -4, b'user', w.name.encode(), 0)}"


@attempt
def store_a_key(w):
    return f"stored {call('add_key', b'user', (w.name + 'x').encode(), b'x', 1, -4)}"
