// The store of mail_queue for tornpage: one JSON object a line on standard input, one answer a line on standard output.
// Replace the methods of Store by calls into your library.
//
//     tornpage explore target 'cmd:node mail_queue.cjs {dir}' --seconds 30
"use strict";
const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

const checksum = (text) => crypto.createHash("sha256").update(text).digest("hex").slice(0, 8);

class Store {
  // Open the store in a directory, or recover what a crash left there.
  constructor(directory) {
    this.file = fs.openSync(path.join(directory, "log"), fs.constants.O_RDWR | fs.constants.O_CREAT, 0o644);
    this.queues = new Map();
    this.count = 0;
    this.taken = new Set();
    this.end = 0;
    const data = fs.readFileSync(path.join(directory, "log"), "latin1");
    for (;;) {
      const stop = data.indexOf("\n", this.end);
      if (stop < 0) break;
      const line = data.slice(this.end, stop);
      const rest = line.slice(9);
      if (line.slice(0, 9) !== checksum(rest) + " ") break;
      this.apply(rest.split(" "));
      this.end = stop + 1;
    }
    fs.ftruncateSync(this.file, this.end);
    fs.fsyncSync(this.file);
    const parent = fs.openSync(directory, "r");
    fs.fsyncSync(parent); // the name of the file is durable too
    fs.closeSync(parent);
  }

  // Carry out a change: put QUEUE BODY, or acknowledge QUEUE HANDLE.
  apply([verb, queue, given]) {
    if (!this.queues.has(queue)) this.queues.set(queue, new Map());
    if (verb === "put") this.queues.get(queue).set(++this.count, given);
    else this.queues.get(queue).delete(Number(given));
  }

  // Append a change to the file, sync it, then carry it out in memory.
  write(...fields) {
    const rest = fields.join(" ");
    const line = `${checksum(rest)} ${rest}\n`;
    fs.writeSync(this.file, line, this.end, "latin1");
    fs.fsyncSync(this.file);
    this.end += line.length;
    this.apply(fields);
  }

  // Each method answers the request of its name. Bodies are base64; this store keeps them so.
  hello() {
    // What your store promises. Only these promises are tested (docs/targets/shapes.md has the list).
    const promises = { durable: "put", kill: "put", removed: "remove", take: "lends" };
    return { tornpage: 1, name: "mail_queue", shape: "queue", open: true, ahead: true, promises };
  }

  put({ queue, body }) {
    this.write("put", queue, body);
    return {};
  }

  // Hand out the next message. It stays until it is acknowledged.
  take({ queue }) {
    for (const [handle, body] of this.queues.get(queue) ?? []) {
      if (this.taken.has(handle)) continue;
      this.taken.add(handle);
      return { handle, body };
    }
    return { handle: null, body: null };
  }

  acknowledge({ queue, handle }) {
    this.write("acknowledge", queue, handle);
    return {};
  }

  list({ queue }) {
    return { bodies: [...(this.queues.get(queue) ?? new Map()).values()] };
  }

  flush() {
    fs.fsyncSync(this.file);
    return {};
  }

  close() {
    fs.closeSync(this.file);
    return {};
  }
}

const VERBS = ["hello", "put", "take", "acknowledge", "list", "flush", "close"];
let store = new Store(process.argv[2]);
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const ask = JSON.parse(line);
  let answer;
  try {
    if (ask.do === "open") {
      store = new Store(ask.dir); // after a close: a store in another directory
      ask.do = "hello";
    }
    if (!VERBS.includes(ask.do)) throw new Error(`no request ${ask.do}`);
    answer = store[ask.do](ask);
  } catch (error) {
    answer = { error: String(error.message) };
  }
  fs.writeSync(1, JSON.stringify(answer) + "\n");
});
