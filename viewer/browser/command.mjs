// The command that is tried: FONTIS names it.
import { spawn } from "node:child_process";

const FONTIS = process.env.FONTIS ?? new URL("../../target/release/fontis", import.meta.url).pathname;

/** Runs it to its end; gives what it printed. */
export function run(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(FONTIS, args, { stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let error = "";
    child.stdout.on("data", (text) => {
      out += text;
    });
    child.stderr.on("data", (text) => {
      error += text;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(out) : reject(new Error(`fontis ${args.join(" ")}: ${code}: ${error}`))));
  });
}

/** Starts a command that runs until it is stopped; gives its first line and how to stop it. */
export function start(...args) {
  const child = spawn(FONTIS, args, { stdio: ["ignore", "pipe", "ignore"] });
  return new Promise((resolve, reject) => {
    child.stdout.once("data", (text) => resolve({ line: String(text).split("\n")[0], stop: () => child.kill() }));
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`fontis ${args.join(" ")} ended with ${code}`)));
  });
}

/** Starts `fontis view`; gives the page's address and how to stop it. */
export function view(...args) {
  const child = spawn(FONTIS, ["view", "--no-open", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    child.stdout.once("data", (text) => resolve({ url: String(text).trim(), stop: () => child.kill() }));
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`fontis view ${args.join(" ")} ended with ${code}`)));
  });
}
