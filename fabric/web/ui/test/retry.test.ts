import assert from "node:assert/strict";
import { test } from "node:test";

import { DELAYS_MS, afterClose } from "../src/retry.ts";

test("a short drop is tried again after 250 ms, then more slowly, then not any more", () => {
  assert.deepEqual(afterClose(1006, 0, true, "controller"), { kind: "retry", delay_ms: 250 });
  assert.deepEqual(afterClose(1011, 5, true, "controller"), { kind: "retry", delay_ms: 2000 });
  assert.deepEqual(afterClose(1006, DELAYS_MS.length, true, "controller"), { kind: "wait" });
});

test("the attempts together outlast the grace of a controller", () => {
  assert.ok(DELAYS_MS.reduce((sum, delay) => sum + delay, 0) >= 15_000);
});

for (const code of [1007, 1008, 1009]) {
  test(`${code} waits for a person`, () => {
    assert.deepEqual(afterClose(code, 0, true, "controller"), { kind: "wait" });
  });
}

test("readers come back after a reset when the controller has", () => {
  assert.deepEqual(afterClose(4001, 0, true, "readonly"), { kind: "retry", delay_ms: 1000 });
  assert.deepEqual(afterClose(4001, 0, true, "controller"), { kind: "retry", delay_ms: 250 });
});

test("slow views and resets are connected anew", () => {
  for (const code of [1013, 4001]) assert.equal(afterClose(code, 0, true, "controller").kind, "retry");
});

test("without a proof, with a refused one, or after the end, there is nothing to try", () => {
  assert.deepEqual(afterClose(1006, 0, false, "controller"), { kind: "over" });
  assert.deepEqual(afterClose(4002, 0, true, "controller"), { kind: "over" });
  assert.deepEqual(afterClose(4004, 0, true, "controller"), { kind: "over" });
  assert.deepEqual(afterClose(4003, 0, true, "controller"), { kind: "over" });
});
