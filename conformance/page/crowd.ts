// AMQP clients, as little as the page's tests need of them: many that do nothing, one that holds messages, one that publishes.
import { connect, type Socket } from "node:net";

const HEADER = Buffer.from([0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1]);

/** Types of frames. */
const METHOD = 1;
const HEADER_FRAME = 2;
const BODY = 3;

function frame(type: number, channel: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(7);
  head.writeUInt8(type, 0);
  head.writeUInt16BE(channel, 1);
  head.writeUInt32BE(payload.length, 3);
  return Buffer.concat([head, payload, Buffer.from([0xce])]);
}

const method = (classId: number, id: number, args: Buffer, channel = 0): Buffer =>
  frame(METHOD, channel, Buffer.concat([Buffer.from([classId >> 8, classId & 255, id >> 8, id & 255]), args]));

const shortString = (text: string) => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
const longString = (text: string) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(text));
  return Buffer.concat([length, Buffer.from(text)]);
};

const START_OK = method(10, 11, Buffer.concat([Buffer.alloc(4), shortString("PLAIN"), longString("\0guest\0guest"), shortString("en_US")]));
/** One channel, frames of 128 KiB, no heartbeat. */
const TUNE_OK = method(10, 31, Buffer.from([0, 1, 0, 2, 0, 0, 0, 0]));
const open = (vhost: string) => method(10, 40, Buffer.concat([shortString(vhost), Buffer.from([0, 0])]));

const CHANNEL_CLOSE_OK = method(20, 41, Buffer.alloc(0), 1);
const OPEN_CHANNEL = method(20, 10, Buffer.from([0]), 1);
const prefetch = (count: number) => method(60, 10, Buffer.from([0, 0, 0, 0, count >> 8, count & 255, 0]), 1);
const consume = (queue: string) => method(60, 20, Buffer.concat([Buffer.from([0, 0]), shortString(queue), shortString("holder"), Buffer.from([0]), Buffer.alloc(4)]), 1);

/** A message of one byte to a queue, by the default exchange. */
function publish(queue: string, messageId: string): Buffer {
  const MESSAGE_ID = 1 << 7;
  const header = Buffer.alloc(14);
  header.writeUInt16BE(60, 0);
  header.writeBigUInt64BE(1n, 4);
  header.writeUInt16BE(MESSAGE_ID, 12);
  return Buffer.concat([
    method(60, 40, Buffer.concat([Buffer.from([0, 0]), shortString(""), shortString(queue), Buffer.from([0])]), 1),
    frame(HEADER_FRAME, 1, Buffer.concat([header, shortString(messageId)])),
    frame(BODY, 1, Buffer.from("x")),
  ]);
}

/** One connection, open. */
function join(host: string, port: number, vhost = "/"): Promise<Socket> {
  return new Promise((done, failed) => {
    const socket = connect({ host, port }, () => socket.write(HEADER));
    let come = Buffer.alloc(0);
    socket.on("error", failed);
    socket.on("close", () => failed(new Error("the broker closed a connection")));
    socket.on("data", (bytes) => {
      come = Buffer.concat([come, bytes]);
      while (come.length >= 7 && come.length >= come.readUInt32BE(3) + 8) {
        const size = come.readUInt32BE(3) + 8;
        const [classId, id] = come[0] === METHOD ? [come.readUInt16BE(7), come.readUInt16BE(9)] : [0, 0];
        come = come.subarray(size);
        if (classId === 10 && id === 10) socket.write(START_OK);
        else if (classId === 10 && id === 30) socket.write(Buffer.concat([TUNE_OK, open(vhost)]));
        else if (classId === 10 && id === 41) done(socket);
        else if (classId === 20 && id === 40) socket.write(CHANNEL_CLOSE_OK);
      }
    });
  });
}

/** A client that takes what a queue has, so much at most, and acknowledges nothing; returns what ends it, if it is not ended before. */
export async function hold(host: string, port: number, queue: string, most = 0): Promise<() => void> {
  const socket = await join(host, port);
  socket.removeAllListeners("close");
  socket.write(Buffer.concat([OPEN_CHANNEL, prefetch(most), consume(queue)]));
  return () => socket.destroy();
}

/** Publishes a message for each id; returns when all are written. */
export async function publishAll(host: string, port: number, vhost: string, queue: string, ids: string[]): Promise<void> {
  const socket = await join(host, port, vhost);
  socket.removeAllListeners("close");
  await new Promise<void>((done) => socket.write(Buffer.concat([OPEN_CHANNEL, ...ids.map((id) => publish(queue, id))]), () => done()));
  socket.end();
}

/** So many connections, some at a time; returns what closes them. */
export async function crowd(host: string, port: number, count: number): Promise<() => void> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(100, count - sockets.length) }, () => join(host, port));
    sockets.push(...(await Promise.all(some)));
  }
  return () => sockets.forEach((socket) => socket.removeAllListeners("close").destroy());
}
