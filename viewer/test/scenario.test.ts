import { expect, test } from "vitest";
import { SETTINGS, scenario, toStep, toValue } from "../src/scenario";

test("a slider stands where its value was", () => {
  for (const setting of SETTINGS) {
    for (const value of [setting.low, setting.initial, setting.high]) {
      const again = toValue(setting, toStep(setting, value));
      expect(Math.abs(again - value)).toBeLessThanOrEqual(0.01 * Math.max(value, 1));
    }
  }
});

test("a scenario says what the sliders say", () => {
  const text = scenario({ rate: 20, rtt: 100, loss: 1, buffer: 0.5, size: 3 }, "codel", "dfcp");
  for (const line of ['rate = "20 Mbit/s"', 'buffer = "0.5 BDP"', 'queue = "codel"', 'size = "3000000 B"']) {
    expect(text).toContain(line);
  }
});
