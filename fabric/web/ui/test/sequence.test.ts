import assert from "node:assert/strict";
import { test } from "node:test";

import { Sequence } from "../src/sequence.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const painted = (sequence: Sequence, upTo: number, text: string) => {
  const verdict = sequence.output(upTo, bytes(text));
  return verdict.kind === "paint" ? new TextDecoder().decode(verdict.data) : verdict.kind;
};

test("what follows the snapshot is painted", () => {
  const sequence = new Sequence();
  sequence.snapshot(10);
  assert.equal(painted(sequence, 13, "abc"), "abc");
  assert.equal(painted(sequence, 15, "de"), "de");
  assert.equal(sequence.seen, 15);
});

test("what was seen is dropped, also in part", () => {
  const sequence = new Sequence();
  sequence.snapshot(10);
  assert.equal(painted(sequence, 10, "abc"), "drop");
  assert.equal(painted(sequence, 12, "xxab"), "ab");
  assert.equal(painted(sequence, 12, "ab"), "drop");
});

test("a hole asks once, and nothing is painted until the snapshot", () => {
  const sequence = new Sequence();
  sequence.snapshot(10);
  assert.equal(painted(sequence, 20, "abc"), "ask");
  assert.equal(painted(sequence, 23, "def"), "drop");
  assert.equal(painted(sequence, 12, "ab"), "drop");
  sequence.snapshot(23);
  assert.equal(painted(sequence, 24, "g"), "g");
});

test("output before any snapshot asks for one", () => {
  assert.equal(painted(new Sequence(), 3, "abc"), "ask");
});

test("after skipping only a snapshot counts", () => {
  const sequence = new Sequence();
  sequence.snapshot(10);
  sequence.skip();
  assert.equal(painted(sequence, 11, "a"), "drop");
  sequence.snapshot(5);
  assert.equal(painted(sequence, 6, "b"), "b");
});
