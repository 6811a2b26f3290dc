import assert from "node:assert/strict";
import { test } from "node:test";

import { FrameError, decode, encode, encodeHello } from "../src/frames.ts";

const frame = (fields: object) => JSON.stringify({ v: 1, generation: 3, ...fields });

test("the first frame carries the ticket or the proof and no generation", () => {
  assert.deepEqual(JSON.parse(encodeHello({ ticket: "abc" })), {
    v: 1,
    type: "hello",
    ticket: "abc",
  });
  assert.deepEqual(JSON.parse(encodeHello({ resume: "abc" })), {
    v: 1,
    type: "hello",
    resume: "abc",
  });
});

test("every other frame carries version and generation", () => {
  assert.deepEqual(JSON.parse(encode({ type: "human.input", data: "é\r" }, 7)), {
    v: 1,
    generation: 7,
    type: "human.input",
    data: "é\r",
  });
});

test("output comes as bytes, whatever they are", () => {
  const decoded = decode(frame({ type: "output", sequence: 4, data: "AP/igA==" }));
  assert.equal(decoded.type, "output");
  assert.deepEqual(decoded.type === "output" && [...decoded.data], [0, 255, 226, 128]);
});

test("settings that are not sent have the defaults of the server", () => {
  const decoded = decode(frame({ type: "attached", role: "readonly", kind: "shared" }));
  assert.ok(decoded.type === "attached");
  assert.equal(decoded.settings.rows, 40);
  assert.equal(decoded.settings.cols, 160);
  assert.equal(decoded.settings.max_input_bytes, 65_536);
  assert.equal(decoded.resume, "");
});

test("nobody holding and nothing to take over are null on the wire", () => {
  const decoded = decode(
    frame({ type: "status", process: "running", queue: "ready", holder: null, pending: 0 }),
  );
  assert.ok(decoded.type === "status");
  assert.equal(decoded.holder, "");
  assert.equal(decoded.takeover, null);
});

test("fields nobody here knows are left alone", () => {
  assert.equal(decode(frame({ type: "heartbeat", later: true })).type, "heartbeat");
});

for (const [what, text] of [
  ["not text", new ArrayBuffer(1)],
  ["not JSON", "{"],
  ["a list", "[]"],
  ["another version", JSON.stringify({ v: 2, generation: 1, type: "heartbeat" })],
  ["no generation", JSON.stringify({ v: 1, type: "heartbeat" })],
  ["a negative generation", JSON.stringify({ v: 1, generation: -1, type: "heartbeat" })],
  ["an unknown type", frame({ type: "human.paste" })],
  ["a fraction as sequence", frame({ type: "output", sequence: 1.5, data: "" })],
  ["data that is not base64", frame({ type: "output", sequence: 1, data: "*" })],
  ["an unknown role", frame({ type: "attached", role: "owner", kind: "shared" })],
  ["an unknown kind", frame({ type: "attached", role: "readonly", kind: "desk" })],
  ["sessions that are no list", frame({ type: "sessions", sessions: {} })],
] as const) {
  test(`${what} is a fault of the protocol`, () => {
    assert.throws(() => decode(text), FrameError);
  });
}
