/** JSON that keeps every digit. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { encode, parseExact, RawJson } from "../src/index.js";

test("what is parsed exactly is written as it was", () => {
  for (const text of [
    "1",
    "1.0",
    "-0",
    "1E2",
    "123456789012345678901234567890",
    '{"a":[1,2.50,"3.0 \\" 4.0",null,{"b":1e400}],"1.0":true}',
    '"\\\\"',
    "[]",
  ]) {
    assert.equal(encode(parseExact(text)), text);
  }
});

test("numbers that JavaScript writes alike stay numbers", () => {
  assert.deepEqual(parseExact('[1, 0.5, -7, 9007199254740991, 9007199254740993]'), [
    1,
    0.5,
    -7,
    9007199254740991,
    new RawJson("9007199254740993"),
  ]);
});

test("long texts are encoded exactly", () => {
  const text = `{"text":"${"ψ\\n".repeat(4_000_000)}","n":1.0}`;
  assert.equal(encode(parseExact(text)), text);
});

test("text that is not JSON is none", () => {
  for (const text of ["", "1.", "{'a': 1}", "01", "[1 2]"]) assert.throws(() => parseExact(text), SyntaxError);
});

test("values with toJSON use it, and undefined properties are omitted", () => {
  assert.equal(encode({ at: new Date(0), nothing: undefined }), '{"at":"1970-01-01T00:00:00.000Z"}');
});
