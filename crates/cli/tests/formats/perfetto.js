// Has Perfetto read a trace, and answer questions about it: perfetto.js FOLDER TRACE SQL...
//
// FOLDER is that of Perfetto's page, with engine_bundle.js and trace_processor.wasm. They are run as the
// page runs them, but that the page has them in a worker: the worker's names are given here. Each answer
// is a line, a JSON list of rows. Field numbers are those of trace_processor.proto.
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const [folder, trace, ...questions] = process.argv.slice(2);
const METHOD = { append: 1, finalize: 2, query: 3 };

function varint(number) {
    const bytes = [];
    for (let rest = BigInt(number); ; rest >>= 7n) {
        bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
        if (rest <= 0x7fn)
            return Buffer.from(bytes);
    }
}

function field(number, value) {
    return Buffer.isBuffer(value)
        ? Buffer.concat([varint(number * 8 + 2), varint(value.length), value])
        : Buffer.concat([varint(number * 8), varint(value)]);
}

function number(at) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
        const byte = at.bytes[at.place++];
        value |= BigInt(byte & 0x7f) << shift;
        if (byte < 0x80)
            return Number(BigInt.asIntN(64, value));
    }
}

// Returns the fields of a message, a list for each number.
function fields(bytes) {
    const found = {}, at = { bytes, place: 0 };
    while (at.place < bytes.length) {
        const key = number(at);
        let value;
        if ((key & 7) === 0) {
            value = number(at);
        } else if ((key & 7) === 2) {
            const length = number(at);
            value = bytes.subarray(at.place, at.place += length);
        } else {
            throw new Error(`a field of wire type ${key & 7}`);
        }
        (found[key >> 3] ||= []).push(value);
    }
    return found;
}

function numbers(blocks = []) {
    const all = [];
    for (const block of blocks) {
        if (!Buffer.isBuffer(block)) {
            all.push(block);
            continue;
        }
        for (const at = { bytes: block, place: 0 }; at.place < block.length;)
            all.push(number(at));
    }
    return all;
}

// Returns the rows of a batch of an answer.
function rows(bytes, width) {
    const batch = fields(bytes), all = [];
    const whole = numbers(batch[2]);
    const texts = (batch[5] || []).flatMap(texts => texts.toString().split("\0").slice(0, -1));
    const floats = Buffer.concat(batch[3] || []);
    let double = 0;
    for (const kind of numbers(batch[1])) {
        if (all.length === 0 || all.at(-1).length === width)
            all.push([]);
        switch (kind) {
        case 1: all.at(-1).push(null); break;
        case 2: all.at(-1).push(whole.shift()); break;
        case 3: all.at(-1).push(floats.readDoubleLE(8 * double++)); break;
        case 4: all.at(-1).push(texts.shift()); break;
        default: throw new Error(`a cell of kind ${kind}`);
        }
    }
    return all;
}

// What a worker has, as far as the engine asks for it.
const worker = {
    WorkerGlobalScope: Object,
    location: { href: "" },
    console: { log() {}, warn() {}, error: console.error },
    TextDecoder, TextEncoder, URL, performance, crypto,
    setTimeout, clearTimeout, setInterval, clearInterval,
    XMLHttpRequest: class {
        open(method, name) {
            this.name = path.basename(name);
        }
        send() {
            this.response = fs.readFileSync(path.join(folder, this.name));
        }
    },
};
worker.self = worker;
vm.runInNewContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);

let heard = Buffer.alloc(0), sequence = 0;
const answers = [];
const port = {
    postMessage(bytes) {
        heard = Buffer.concat([heard, Buffer.from(bytes)]);
    },
};

// Sends a request and returns the messages that answer it.
function ask(method, more = Buffer.alloc(0)) {
    const message = Buffer.concat([field(1, sequence++), field(2, method), more]);
    heard = Buffer.alloc(0);
    const bytes = vm.runInContext("length => new Uint8Array(length)", worker)(field(1, message).length);
    bytes.set(field(1, message));
    port.onmessage({ data: bytes });
    const said = (fields(heard)[1] || []).map(fields);
    for (const answer of said)
        if (answer[5])
            throw new Error(answer[5][0].toString());
    return said;
}

function main() {
    const bytes = fs.readFileSync(trace);
    for (let place = 0; place < bytes.length; place += 1 << 20)
        ask(METHOD.append, field(101, bytes.subarray(place, place + (1 << 20))));
    ask(METHOD.finalize);
    for (const question of questions) {
        let width = 0;
        const all = [];
        for (const said of ask(METHOD.query, field(103, field(1, Buffer.from(question)))))
            for (const result of (said[203] || []).map(fields)) {
                if (result[2] && result[2][0].length !== 0)
                    throw new Error(result[2][0].toString());
                width ||= (result[1] || []).length;
                for (const batch of result[3] || [])
                    all.push(...rows(batch, width));
            }
        console.log(JSON.stringify(all));
    }
}

worker.onmessage({ data: port });
// The engine has read its module by now; what it does then waits for its turn.
setTimeout(main);
