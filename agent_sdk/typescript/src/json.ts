/**
 * JSON as it is written: numbers of JavaScript hold integers up to 2^53 and no more, JSON has no such bound.
 *
 * What is sent may hold a `bigint`, or `RawJson` for anything else that JavaScript cannot say, such as `1.0`.
 * What arrives is parsed, and its text is kept beside it for `parseExact`.
 */

import { randomUUID } from "node:crypto";

/** A JSON object. Its values are `any` because an agent reads what it was told, not what a type says. */
export type JsonObject = { [name: string]: any };

/** Text that stands for itself wherever a JSON value may stand. */
export class RawJson {
  /** @param text - one JSON value; what it says is for the other side to judge. */
  constructor(readonly text: string) {}
}

/**
 * Returns a value as compact JSON. What JSON cannot hold is never replaced by something that it can.
 *
 * @throws TypeError or RangeError - it holds NaN, Infinity, half a surrogate pair, a function, or itself.
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
 * Returns a JSON text parsed such that `encode` says the same again: a number that JavaScript would not write
 * as it stands there, such as `1.0` or one of twenty digits, becomes `RawJson`.
 *
 * @throws SyntaxError - it is not JSON.
 */
export function parseExact(text: string): unknown {
  JSON.parse(text); // What is exchanged below is known to be numbers then.
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
