"""Arguments of a wrong type: every verb of the client refuses them with an error of ours."""

import asyncio
import inspect

import pytest

from fabric.core.errors import FabricError, InvalidRequestError

SESSION_VERBS = [
    ("send", (1,), {}),
    ("send", (None,), {}),
    ("send", ("x",), {"timeout_s": "3"}),
    ("send", ("x",), {"request_id": 5}),
    ("send_background", (1,), {}),
    ("write", (1,), {}),
    ("signal", (2,), {}),
    ("read", ("a",), {}),
    ("read", (0, 1.5), {}),
    ("resize", ("a", 3), {}),
    ("wait_for", (1,), {}),
    ("wait_for", (), {"quiet_s": "x"}),
    ("tail", (), {"lines": "x"}),
    ("read_bytes", ("x",), {}),
]
CLIENT_VERBS = [
    ("session", (1,), {}),
    ("session", (None,), {}),
    ("session", (b"ses_aaaaaaaaaaaaaaaa",), {}),
    ("task", (1,), {}),
    ("open", (1,), {}),
    ("open", (), {"name": 1}),
    ("open", (), {"env": [1]}),
    ("open", (), {"env": {1: 2}}),
    ("open", (), {"rows": "x"}),
    ("open", (), {"cwd": 1}),
    ("open", (), {"timeout_s": "x"}),
    ("call_tool", (1,), {}),
    ("call_tool", ("terminal_list", 5), {}),
    ("call_tool", ("terminal_list", {"x": {1}}), {}),
    ("set_mode", (1,), {}),
]


async def refused(verb, args, kwargs):
    async def call():
        made = verb(*args, **kwargs)
        if inspect.isawaitable(made):
            await asyncio.wait_for(made, 10)

    with pytest.raises(FabricError) as caught:
        await call()
    return caught.value


@pytest.mark.parametrize(("name", "args", "kwargs"), SESSION_VERBS)
async def test_a_session_s_verbs(client, name, args, kwargs):
    shell = await client.open()
    error = await refused(getattr(shell, name), args, kwargs)
    assert isinstance(error, InvalidRequestError), error
    assert error.message


@pytest.mark.parametrize(("name", "args", "kwargs"), CLIENT_VERBS)
async def test_a_client_s_verbs(client, name, args, kwargs):
    error = await refused(getattr(client, name), args, kwargs)
    assert error.exit_code == 2, error
