import { expect, test } from "vitest";
import { axisLabel, niceStep } from "../src/axis";
import { align, short } from "../src/plot";
import { decode, duration, lowerBound, type Series } from "../src/trace";

test("what is no trace is refused with what is wrong", () => {
  expect(() => decode(new ArrayBuffer(4))).toThrow("no trace");
  const bytes = new Uint8Array(64);
  bytes.set(new TextEncoder().encode("FONTISTR"));
  bytes[8] = 9;
  expect(() => decode(bytes.buffer)).toThrow("version 9");
  bytes[8] = 2;
  bytes[13] = 1;
  expect(() => decode(bytes.buffer)).toThrow("cut off");
});

test("the first index with at least a value is found", () => {
  const array = Float64Array.of(1, 2, 2, 5);
  expect([0, 1, 2, 3, 5, 6].map((value) => lowerBound(array, value))).toEqual([0, 0, 1, 3, 3, 4]);
});

test("axes have round marks", () => {
  expect([1, 3, 7, 12, 2.5e6].map(niceStep)).toEqual([1, 5, 10, 20, 5e6]);
  expect(axisLabel(1.25e9, 5e7)).toBe("1.25 s");
  expect([short(950), short(12345), short(2.5e6), duration(1.5e6)]).toEqual(["950", "12.35 k", "2.5 M", "1.50 ms"]);
});

test("series with times of their own are put on the times of all", () => {
  const of = (time: number[], value: number[]) =>
    ({ time: Float64Array.from(time), value: Float32Array.from(value) }) as unknown as Series;
  const table = align([of([0, 1e9, 1e9], [1, 2, 3]), of([5e8], [7])]);
  expect(table[0]).toEqual([0, 0.5, 1]);
  expect(table[1][2]).toBe(3);
});
