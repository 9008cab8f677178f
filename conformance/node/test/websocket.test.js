// @cloudamqp/amqp-client over WebSocket, as in a browser: Node.js 20 has no WebSocket of its own, so `ws` stands in for it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMQPWebSocketClient } from '@cloudamqp/amqp-client/amqp-websocket-client';
import { WebSocket } from 'ws';

const url = process.env.COURSER_TEST_WEBSOCKET;
// Only our broker has such an address.
const options = { skip: url ? false : 'COURSER_TEST_WEBSOCKET names no address' };
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

async function connect(t, parts = {}) {
  globalThis.WebSocket = WebSocket;
  const client = new AMQPWebSocketClient({ url, logger: quiet, ...parts });
  const connection = await client.connect();
  t.after(() => (connection.closed ? undefined : connection.close()));
  return connection;
}

test('messages of all sizes are confirmed, and come in order', options, async (t) => {
  const connection = await connect(t);
  const channel = await connection.channel();
  await channel.confirmSelect();
  const queue = await channel.queueDeclare('', { exclusive: true });
  const sizes = [0, 1, 4000, 8191, 8192, 100_000, 1_000_000];
  const received = [];
  const all = new Promise((resolve) => {
    channel.basicConsume(queue.name, { noAck: false }, (message) => {
      received.push(message);
      message.ack();
      if (received.length === sizes.length) resolve();
    });
  });
  for (const [index, size] of sizes.entries()) {
    const tag = await channel.basicPublish('', queue.name, new Uint8Array(size).fill(index), { messageId: `${index}` });
    assert.equal(tag, index + 1);
  }
  await all;
  for (const [index, message] of received.entries()) {
    assert.equal(message.properties.messageId, `${index}`);
    assert.equal(message.body?.length ?? 0, sizes[index]);
    assert.ok((message.body ?? []).every((byte) => byte === index));
  }
});

test('ten thousand small messages go both ways at once', options, async (t) => {
  const connection = await connect(t, { frameMax: 131_072 });
  const channel = await connection.channel();
  const queue = await channel.queueDeclare('', { exclusive: true });
  const count = 10_000;
  let next = 0;
  const all = new Promise((resolve, reject) => {
    channel.basicConsume(queue.name, { noAck: true }, (message) => {
      if (message.bodyString() !== `${next}`) reject(new Error(`${message.bodyString()} came for ${next}`));
      next += 1;
      if (next === count) resolve();
    });
  });
  for (let index = 0; index < count; index += 1) await channel.basicPublish('', queue.name, `${index}`);
  await all;
});

test('an error closes the channel with its text, and the connection goes on', options, async (t) => {
  const connection = await connect(t);
  const channel = await connection.channel();
  await assert.rejects(channel.queueDeclare('no.such.queue', { passive: true }), /NOT_FOUND/);
  const again = await connection.channel();
  assert.ok((await again.queueDeclare('', { exclusive: true })).name);
});

test('a wrong password is refused as over TCP', options, async (t) => {
  await assert.rejects(connect(t, { username: 'guest', password: 'wrong' }), /ACCESS_REFUSED/);
});

test('a connection that is closed ends cleanly', options, async (t) => {
  const connection = await connect(t);
  const ended = new Promise((resolve) => {
    connection.socket.addEventListener('close', (event) => resolve(event));
  });
  await connection.close();
  const { code, wasClean } = await ended;
  assert.ok(wasClean);
  // Without a code where the client was first to close.
  assert.ok([1000, 1005].includes(code), `${code}`);
});
