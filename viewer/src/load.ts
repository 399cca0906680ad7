/** The sources of traces: the page itself, the command that serves it, or a dropped file. */

import { decode, type Trace } from "./trace";

export interface Named {
  name: string;
  trace: Trace;
}

export interface Info {
  traces: { title: string; version: string }[];
  live: boolean;
}

/** The traces that an exported page holds. */
export async function embedded(): Promise<Named[]> {
  const text = document.getElementById("traces")?.textContent ?? "[]";
  const list: { title: string; gzip: string }[] = JSON.parse(text);
  return Promise.all(list.map(async ({ title, gzip }) => ({ name: title, trace: decode(await unpack(gzip)) })));
}

/** What an exported page holds as gzip in base64. */
export async function unpack(base64: string): Promise<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function get(path: string): Promise<Response> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(await response.text());
  return response;
}

export async function info(): Promise<Info> {
  return (await get("info")).json();
}

/** A trace of the command; with a span, that part in full. */
export async function served(index: number, span?: [number, number]): Promise<Trace> {
  const query = span ? `?from=${Math.floor(span[0])}&until=${Math.ceil(span[1])}` : "";
  return decode(await (await get(`data/${index}${query}`)).arrayBuffer());
}
