import assert from "node:assert/strict";
import { test } from "node:test";

import { Lease, utf8Length } from "../src/lease.ts";

test("lengths are counted in UTF-8", () => {
  assert.equal(utf8Length(""), 0);
  assert.equal(utf8Length("aé你😀"), 1 + 2 + 3 + 4);
  assert.equal(utf8Length("\ud83d"), -1);
  assert.equal(utf8Length("\ude00x"), -1);
  assert.equal(utf8Length("\ud83dx"), -1);
});

test("keys wait for the grant and go out once, in order", () => {
  const lease = new Lease();
  lease.ask(1);
  assert.equal(lease.type("b", 1), null);
  assert.equal(lease.type("c", 1), null);
  assert.deepEqual(lease.grant(1), { send: "bc", discarded: false });
  assert.deepEqual(lease.grant(1), { send: "", discarded: false });
  assert.equal(lease.type("d", 1), "d");
  assert.equal(lease.usedBytes, 4);
});

test("a refusal gives up what waited", () => {
  const lease = new Lease();
  lease.ask(1);
  lease.type("b", 1);
  assert.equal(lease.revoke(), true);
  assert.equal(lease.state, "none");
  assert.equal(lease.revoke(), false);
});

test("the same lease after a return takes the keys typed meanwhile", () => {
  const lease = new Lease();
  lease.ask(1);
  lease.grant(5);
  lease.disconnect();
  assert.equal(lease.open, true);
  assert.equal(lease.type("x", 1), null);
  assert.deepEqual(lease.grant(5), { send: "x", discarded: false });
});

test("another lease after a return does not", () => {
  const lease = new Lease();
  lease.ask(1);
  lease.grant(5);
  lease.disconnect();
  lease.type("x", 1);
  assert.deepEqual(lease.grant(6), { send: "", discarded: true });
  assert.equal(lease.state, "held");
  assert.equal(lease.usedBytes, 0);
});

test("a request whose answer was lost may still be granted", () => {
  const lease = new Lease();
  lease.ask(1);
  lease.type("b", 1);
  lease.disconnect();
  assert.equal(lease.state, "lost");
  assert.deepEqual(lease.grant(5), { send: "b", discarded: false });
});

test("an interrupt closes the lease at once", () => {
  const lease = new Lease();
  lease.ask(1);
  lease.grant(5);
  assert.equal(lease.interrupt(), false);
  assert.equal(lease.open, false);
  assert.equal(lease.state, "closing");
  lease.disconnect();
  assert.equal(lease.state, "none");
});
