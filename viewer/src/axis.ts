/** Where an axis has its marks, and what they say. */

/** The next of 1, 2 and 5 times a power of ten. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((one) => one * power).find((step) => step >= least) ?? power * 10;
}

export function axisLabel(nanos: number, step: number): string {
  if (step >= 1e9) return `${Math.round(nanos / 1e9)} s`;
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / 1e9)));
  return `${(nanos / 1e9).toFixed(Math.min(9, decimals))} s`;
}
