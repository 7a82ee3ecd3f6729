/**
 * JSON with exact numbers. JavaScript numbers represent integers up to 2^53; JSON has no such limit.
 *
 * A value to send may contain a `bigint`, or `RawJson` for a number that JavaScript cannot represent, such as `1.0`.
 * A received value is parsed, and its text is kept for `parseExact`.
 */

import { randomUUID } from "node:crypto";

/** A JSON object. */
export type JsonObject = { [name: string]: any };

/** JSON text that is sent unchanged in place of a value. */
export class RawJson {
  /** @param text - one JSON value. The service checks it. */
  constructor(readonly text: string) {}
}

/**
 * Returns a value as compact JSON. A value without a JSON form is an error and is never replaced.
 *
 * @throws TypeError or RangeError - it contains NaN, Infinity, a lone surrogate, a function, or itself.
 */
export function encode(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  switch (typeof value) {
    case "string":
      return JSON.stringify(wellFormed(value));
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} is not a number of JSON`);
      return written(value);
    case "bigint":
    case "boolean":
      return String(value);
    case "object":
      return value === null ? "null" : encodeObject(value);
    default:
      throw new TypeError(`JSON cannot hold ${typeof value}`);
  }
}

/**
 * Parses JSON text so that `encode` returns the same text. A number that JavaScript would change, such as `1.0`
 * or one with twenty digits, becomes `RawJson`.
 *
 * @throws SyntaxError - it is not JSON.
 */
export function parseExact(text: string): unknown {
  JSON.parse(text); // Throws if the text is malformed, so the tokens below are numbers.
  const mark = `number ${randomUUID()} `;
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') || written(Number(token)) === token ? token : JSON.stringify(mark + token),
  );
  return JSON.parse(marked, (_, value) =>
    typeof value === "string" && value.startsWith(mark) ? new RawJson(value.slice(mark.length)) : value,
  );
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/**
 * Returns the text as it is.
 *
 * @throws TypeError - it holds half a surrogate pair, which UTF-8 cannot.
 */
export function wellFormed(text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw new TypeError("text with half a surrogate pair");
  return text;
}

function written(value: number): string {
  return Object.is(value, -0) ? "-0.0" : String(value);
}

function encodeObject(value: object): string {
  if ("toJSON" in value && typeof value.toJSON === "function") return encode(value.toJSON());
  if (Array.isArray(value)) return `[${value.map(encode).join(",")}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${encode(name)}:${encode(member)}`).join(",")}}`;
}
