"""A seat outlives its client: what fails is said, and the next call starts anew."""

import pytest

from fabric.core.errors import GatewayUnavailableError, OwnerNotLiveError, UnsupportedError
from fabric.mcp.seat import Seat


class Client:
    """Stands for a FabricClient; ``faults`` are raised by one start after the other."""

    def __init__(self, address="one", fault=None):
        self.addresses = (address,)
        self.fault = fault
        self.keep = False
        self.stopped = 0

    async def start(self):
        if self.fault:
            raise self.fault

    async def stop(self):
        self.stopped += 1

    def events(self, cursor):
        return self

    async def __aiter__(self):
        return
        yield


async def silent(seat, event):
    raise AssertionError("nothing to tell")


def seat_of(*clients):
    left = list(clients)
    return Seat(lambda: left.pop(0), silent)


async def test_a_server_of_another_version_is_said_and_asked_again():
    skew = UnsupportedError("the server 9.0 speaks version 2 of the protocol, update the older one")
    good = Client()
    seat = seat_of(Client(fault=skew), good)
    with pytest.raises(UnsupportedError, match="update the older one"):
        async with seat.client():
            pass
    async with seat.client() as client:
        assert client is good


async def test_one_client_serves_until_it_is_closed():
    good = Client()
    seat = seat_of(good)
    for _ in range(3):
        async with seat.client() as client:
            assert client is good
    await seat.close(keep=True)
    assert (good.stopped, good.keep) == (1, True)
    await seat.close(keep=False)
    assert good.stopped == 1


async def test_an_owner_that_is_no_more_is_forgotten_and_the_model_is_told():
    old, new = Client(), Client()
    seat = seat_of(old, new)
    with pytest.raises(OwnerNotLiveError, match="the next call starts anew"):
        async with seat.client():
            raise OwnerNotLiveError("owner own_x is not live")
    assert (old.stopped, old.keep) == (1, True)
    async with seat.client() as client:
        assert client is new


@pytest.mark.parametrize(("now", "kept"), [("one", True), ("two", False)])
async def test_a_gateway_that_is_away_is_left_only_when_it_is_elsewhere_now(now, kept):
    old, probe, new = Client("one"), Client(now), Client(now)
    seat = seat_of(old, probe, new)
    with pytest.raises(GatewayUnavailableError):
        async with seat.client():
            raise GatewayUnavailableError("no gateway answers")
    async with seat.client() as client:
        assert client is (old if kept else new)
