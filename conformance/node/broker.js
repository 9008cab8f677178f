// Which broker the tests speak to (COURSER_TEST_URI), and what they share.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import amqp from 'amqplib';

export const uri = process.env.COURSER_TEST_URI ?? 'amqp://guest:guest@127.0.0.1:5672/%2F';

// Nothing that the broker has to do takes longer.
export const patienceMs = 20_000;

// A name that no other test and no earlier run has used.
export const fresh = (kind = 'q') => `conformance.${kind}.${randomUUID().slice(24)}`;

// The broker's address with other parts: `address({ password: 'no' })`; amqplib's own settings go into `search`.
export const address = (parts) => Object.assign(new URL(uri), parts).href;

// A connection that is closed when the test ends. Its errors are for the test to expect, by `reasonOf`.
export async function connect(t, parts = {}) {
  const connection = await amqp.connect(address(parts));
  connection.on('error', () => {});
  let closed = false;
  connection.on('close', () => { closed = true; });
  t.after(() => (closed ? undefined : connection.close()));
  return connection;
}

// A confirming channel on a connection of its own.
export async function open(t, parts) {
  return openOn(await connect(t, parts));
}

export async function openOn(connection) {
  const channel = await connection.createConfirmChannel();
  channel.on('error', () => {});
  return channel;
}

// The name of an empty queue that goes with its connection.
export async function exclusiveQueue(channel) {
  return (await channel.assertQueue('', { exclusive: true })).queue;
}

// Publishes and waits until the broker has taken it.
export async function publish(channel, exchange, key, body, options = {}) {
  channel.publish(exchange, key, Buffer.from(body), options);
  await channel.waitForConfirms();
}

// Takes everything out of a queue.
export async function bodies(channel, queue) {
  const taken = [];
  for (;;) {
    const message = await channel.get(queue, { noAck: true });
    if (!message) return taken;
    taken.push(message.content.toString());
  }
}

// The next event with this name, or a failure when none comes.
export async function next(emitter, event) {
  return (await once(emitter, event, { signal: AbortSignal.timeout(patienceMs) }))[0];
}

// The error that a rejected promise or an 'error' event gave has this code and this text.
export function assertReason(error, code, text) {
  assert.equal(error.code, code, error.message);
  assert.ok(error.message.includes(`with message "${text}"`), `${error.message}\nexpected: ${text}`);
}

// A consumer that keeps what it gets: `await inbox.next()` is the next message.
export async function consume(channel, queue, options = {}) {
  const waiting = [];
  const messages = [];
  const { consumerTag } = await channel.consume(
    queue,
    (message) => (waiting.length > 0 ? waiting.shift()(message) : messages.push(message)),
    options,
  );
  return {
    consumerTag,
    messages,
    next() {
      if (messages.length > 0) return Promise.resolve(messages.shift());
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('no message came')), patienceMs);
        waiting.push((message) => {
          clearTimeout(timer);
          resolve(message);
        });
      });
    },
  };
}

// A moment in which something should not happen.
export const settle = (ms = 200) => new Promise((resolve) => setTimeout(resolve, ms));
