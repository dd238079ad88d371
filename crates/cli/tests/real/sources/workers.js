// Worker threads, the thread pool, and a child process.
const { Worker, isMainThread, parentPort } = require("worker_threads");
const crypto = require("crypto");
const { execFile } = require("child_process");

if (isMainThread) {
  let sum = 0, left = 4;
  for (let i = 0; i < 4; i++) {
    new Worker(__filename).on("message", (part) => {
      sum += part;
      if (--left === 0) pool(sum);
    });
  }
} else {
  let sum = 0;
  for (let i = 0; i < 300000; i++) sum += i % 7;
  parentPort.postMessage(sum);
}

function pool(sum) {
  const keys = [];
  for (let i = 0; i < 12; i++) {
    crypto.pbkdf2("a", "b" + i, 500, 32, "sha256", (error, key) => {
      keys.push(key.toString("hex"));
      if (keys.length === 12) child(sum, keys.sort());
    });
  }
}

function child(sum, keys) {
  execFile("sh", ["-c", "echo child; exit 4"], (error, out) => {
    console.log(sum, keys.join(), error.code, out);
    process.exit(7);
  });
}
