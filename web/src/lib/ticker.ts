// Runs in a worker: a beat each second.
setInterval(() => postMessage(0), 1000);
export {};
