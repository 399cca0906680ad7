import { expect, test } from "vitest";
import { fromHash, INITIAL, type Shown, toHash } from "../src/state";

test("what is shown comes back from the link", () => {
  const all: Partial<Shown>[] = [
    {},
    { from: 1e9, until: 1.5e9 },
    { view: "timeline", colour: "path" },
    { flow: 2, path: 1 },
    { marks: 8 },
    { lost: true },
    { follow: { what: "packet", packet: 17 } },
    { follow: { what: "block", flow: 0, channel: 3, block: 40 } },
    { follow: { what: "seq", flow: 1, seq: 123456 } },
  ];
  for (const change of all) {
    const shown = { ...INITIAL, ...change };
    expect(fromHash(toHash(shown))).toEqual(shown);
  }
});

test("what makes no sense in a link is left out", () => {
  for (const hash of [
    "#t=9-3",
    "#t=a-b",
    "#view=tunnel",
    "#colour=0",
    "#flow=-1",
    "#path=2",
    "#block=1.2",
    "#packet=x",
    "#=&&",
  ]) {
    expect(fromHash(hash)).toEqual(INITIAL);
  }
});
