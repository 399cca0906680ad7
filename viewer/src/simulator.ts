/** The simulator, and the readers of files, as WebAssembly: bytes in, a trace out (viewer/wasm). */

import { unpack } from "./load";
import { decode, type Trace } from "./trace";

interface Exports {
  memory: WebAssembly.Memory;
  fontis_reserve(length: number): number;
  fontis_simulate(): number;
  fontis_read(): number;
  fontis_output(): number;
  fontis_output_len(): number;
}

export class Simulator {
  private constructor(private readonly exports: Exports) {}

  /** From the page itself if it was exported, else from whoever serves it. */
  static async load(path = "fontis.wasm"): Promise<Simulator> {
    const [packed]: string[] = JSON.parse(document.getElementById("wasm")?.textContent ?? "[]");
    const code = packed ? await unpack(packed) : await Simulator.fetch(path);
    const { instance } = await WebAssembly.instantiate(code, {});
    return new Simulator(instance.exports as unknown as Exports);
  }

  private static async fetch(path: string): Promise<ArrayBuffer> {
    const response = await fetch(path);
    if (!response.ok) throw new Error("the simulator was not built into this page: run make viewer");
    return response.arrayBuffer();
  }

  /** Runs a scenario as it is written in a file; throws with what is wrong with it. */
  simulate(scenario: string): Trace {
    return this.call(new TextEncoder().encode(scenario), () => this.exports.fontis_simulate());
  }

  /** Reads a file of any kind that `fontis view` knows. */
  read(bytes: Uint8Array): Trace {
    return this.call(bytes, () => this.exports.fontis_read());
  }

  private call(input: Uint8Array, run: () => number): Trace {
    const at = this.exports.fontis_reserve(input.length);
    new Uint8Array(this.exports.memory.buffer, at, input.length).set(input);
    const done = run() === 1;
    const length = this.exports.fontis_output_len();
    // A copy: the memory grows under what is only looked at.
    const output = this.exports.memory.buffer.slice(this.exports.fontis_output(), this.exports.fontis_output() + length);
    if (!done) throw new Error(new TextDecoder().decode(output));
    return decode(output);
  }
}
