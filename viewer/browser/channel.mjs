// Chromium's end of a data channel. Commands come as JSON, a line each, and so do answers:
//   {"do": "offer"} and {"do": "answer", "sdp"} give {"sdp"}; {"do": "accept", "sdp"} gives {}.
//   {"do": "send", "label", "ordered", "sizes"} opens a channel, sends messages of these lengths,
//   of which those at odd places are text, and gives {"back"}: how many came back as they were.
//   {"do": "closed"} gives {"closed"}: the labels of the channels that ended.
import { createInterface } from "node:readline";
import { open } from "./browser.mjs";

/** What runs in the page. */
function install() {
  const connection = new RTCPeerConnection();
  const closed = [];
  connection.ondatachannel = ({ channel }) => {
    channel.binaryType = "arraybuffer";
    // What does not fit into the buffer waits.
    const waiting = [];
    channel.bufferedAmountLowThreshold = 1 << 20;
    const send = () => {
      while (waiting.length > 0 && channel.bufferedAmount < 8 << 20) channel.send(waiting.shift());
    };
    channel.onbufferedamountlow = send;
    channel.onmessage = ({ data }) => {
      waiting.push(data);
      send();
    };
    channel.onclose = () => closed.push(channel.label);
  };
  const gathered = () =>
    new Promise((done) => {
      if (connection.iceGatheringState === "complete") done();
      connection.onicegatheringstatechange = () => connection.iceGatheringState === "complete" && done();
    });
  const content = (size, at) => {
    if (at % 2 === 1) return "λ".repeat(size / 2);
    return Uint8Array.from({ length: size }, (_, byte) => (byte * 31 + at) & 255).buffer;
  };
  const same = (a, b) => {
    if (typeof a === "string") return a === b;
    const [x, y] = [new Uint8Array(a), new Uint8Array(b)];
    return x.length === y.length && x.every((byte, at) => byte === y[at]);
  };
  const commands = {
    async offer() {
      connection.createDataChannel("first");
      await connection.setLocalDescription(await connection.createOffer());
      await gathered();
      return { sdp: connection.localDescription.sdp };
    },
    async answer({ sdp }) {
      await connection.setRemoteDescription({ type: "offer", sdp });
      await connection.setLocalDescription(await connection.createAnswer());
      await gathered();
      return { sdp: connection.localDescription.sdp };
    },
    async accept({ sdp }) {
      await connection.setRemoteDescription({ type: "answer", sdp });
      return {};
    },
    async send({ label, ordered, sizes }) {
      const channel = connection.createDataChannel(label, { ordered });
      channel.binaryType = "arraybuffer";
      await new Promise((done) => {
        channel.onopen = done;
      });
      let back = 0;
      for (const [at, size] of sizes.entries()) {
        const sent = content(size, at);
        const came = new Promise((done) => {
          channel.onmessage = ({ data }) => done(data);
        });
        channel.send(sent);
        back += same(sent, await came) ? 1 : 0;
      }
      channel.close();
      return { back };
    },
    async closed() {
      return { closed };
    },
  };
  window.command = (line) => commands[line.do](line);
}

const { browser, page } = await open();
await page.evaluate(install);
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await page.evaluate((line) => window.command(line), JSON.parse(line));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
