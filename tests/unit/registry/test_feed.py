"""Who has news, by version: bounded, and never silently incomplete."""

import asyncio

from fabric.core.ids import OwnerId
from fabric.registry.feed import Feed

A, B = OwnerId("own_a"), OwnerId("own_b")


async def test_only_what_came_after_the_version_is_named_once():
    feed = Feed(1000.0)
    start = (await feed.after(None, 0)).version
    feed.note(A)
    middle = (await feed.after(start, 0)).version
    feed.note(B)
    feed.note(B)
    assert (await feed.after(start, 0)).owners == (B, A)
    page = await feed.after(middle, 0)
    assert (page.owners, page.missed) == ((B,), False)
    assert (await feed.after(page.version, 0)).owners == ()


async def test_a_wait_ends_with_the_first_news_and_leaves_nothing():
    feed = Feed(1000.0)
    start = (await feed.after(None, 0)).version
    waiting = [asyncio.create_task(feed.after(start, 60)) for _ in range(3)]
    await asyncio.sleep(0)
    feed.note(A)
    assert [(await task).owners for task in waiting] == [(A,)] * 3
    left = asyncio.create_task(feed.after((await waiting[0]).version, 60))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.wait({left})
    assert not feed._waiting


async def test_what_was_dropped_is_said_to_be_missed():
    feed = Feed(1000.0, max_entries=2)
    start = (await feed.after(None, 0)).version
    for owner in (A, B, A):
        feed.note(owner)
    assert (await feed.after(start, 60)).missed
    assert not (await feed.after(start + 1, 60)).missed


async def test_a_version_of_a_registry_that_died_is_missed_at_once():
    old = Feed(1000.0)
    old.note(A)
    version = (await old.after(None, 0)).version
    new = Feed(1001.0)
    assert (await new.after(version, 60)).missed
    assert (await new.after((await new.after(None, 0)).version + 7, 60)).missed
