// The store of whole_files for tornpage: one JSON object a line on standard input, one answer a line on standard output.
// Replace the methods of Store by calls into your library.
//
//     tornpage explore target 'cmd:node whole_files.cjs {dir}' --seconds 30
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

class Store {
  // Open the store in a directory, or recover what a crash left there.
  constructor(directory) {
    this.directory = directory;
  }

  // Each method answers the request of its name. Contents are base64.
  hello() {
    // What your library promises. Only these promises are tested (docs/targets/shapes.md has the list).
    const promises = { durable: "write", kill: "write", atomic: true, remove: true };
    return { tornpage: 1, name: "whole_files", shape: "file", open: true, ahead: true, promises };
  }

  // A crash leaves the old content or the new one.
  write({ name, content }) {
    const made = path.join(this.directory, `.${name}.new`);
    const file = fs.openSync(made, "w");
    fs.writeFileSync(file, Buffer.from(content, "base64"));
    fs.fsyncSync(file);
    fs.closeSync(file);
    fs.renameSync(made, path.join(this.directory, name));
    return this.flush();
  }

  read({ name }) {
    const file = path.join(this.directory, name);
    return { content: fs.existsSync(file) ? fs.readFileSync(file).toString("base64") : null };
  }

  remove({ name }) {
    fs.rmSync(path.join(this.directory, name), { force: true });
    return this.flush();
  }

  // Make the names durable.
  flush() {
    const directory = fs.openSync(this.directory, "r");
    fs.fsyncSync(directory);
    fs.closeSync(directory);
    return {};
  }

  close() {
    return {};
  }
}

const VERBS = ["hello", "write", "read", "remove", "flush", "close"];
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
