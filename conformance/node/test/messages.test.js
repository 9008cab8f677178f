// Messages: published with confirms, routed, consumed, given back, and unchanged on the way.
import assert from 'node:assert/strict';
import test from 'node:test';
import { bodies, connect, consume, exclusiveQueue, fresh, next, open, openOn, publish, settle } from '../broker.js';

test('a thousand confirms in flight', async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  let confirmed = 0;
  for (let number = 0; number < 1000; number += 1) {
    channel.sendToQueue(queue, Buffer.from(`${number}`), {}, (error) => {
      assert.equal(error, null);
      confirmed += 1;
    });
  }
  await channel.waitForConfirms();
  assert.equal(confirmed, 1000);
  assert.equal((await channel.checkQueue(queue)).messageCount, 1000);
  assert.deepEqual(await bodies(channel, queue), Array.from({ length: 1000 }, (_, number) => `${number}`));
});

test('a mandatory message comes back before its confirm', async (t) => {
  const channel = await open(t);
  const events = [];
  channel.on('return', (message) => events.push(message));
  await publish(channel, 'amq.topic', 'nowhere', 'body', { mandatory: true, messageId: '7' });
  assert.equal(events.length, 1);
  const [{ fields, properties, content }] = events;
  assert.deepEqual([fields.replyCode, fields.replyText], [312, 'NO_ROUTE']);
  assert.deepEqual([fields.exchange, fields.routingKey], ['amq.topic', 'nowhere']);
  assert.equal(properties.messageId, '7');
  assert.equal(content.toString(), 'body');
});

test('direct, topic, fanout and headers route', async (t) => {
  const channel = await open(t);
  const cases = [
    ['direct', 'red', {}, ['red']],
    ['topic', 'red.#', {}, ['red', 'red.1']],
    ['fanout', '', {}, ['red', 'red.1', 'blue']],
    ['headers', '', { 'x-match': 'any', shape: 'round', size: 3 }, ['blue']],
  ];
  for (const [kind, pattern, args, expected] of cases) {
    const exchange = fresh('x');
    const queue = await exclusiveQueue(channel);
    await channel.assertExchange(exchange, kind, { durable: false, autoDelete: true });
    await channel.bindQueue(queue, exchange, pattern, args);
    for (const key of ['red', 'red.1', 'blue']) {
      await publish(channel, exchange, key, key, { headers: { size: key === 'blue' ? 3 : 4 } });
    }
    assert.deepEqual(await bodies(channel, queue), expected, kind);
  }
});

test('exchanges bind to exchanges', async (t) => {
  const channel = await open(t);
  const [source, destination] = [fresh('x'), fresh('x')];
  const queue = await exclusiveQueue(channel);
  await channel.assertExchange(source, 'direct', { durable: false, autoDelete: true });
  await channel.assertExchange(destination, 'fanout', { durable: false, autoDelete: true, internal: true });
  await channel.bindExchange(destination, source, 'key');
  await channel.bindQueue(queue, destination, '');
  await publish(channel, source, 'key', 'through');
  await publish(channel, source, 'other', 'past');
  assert.deepEqual(await bodies(channel, queue), ['through']);
  await channel.unbindQueue(queue, destination, '');
  await assert.rejects(channel.checkExchange(destination), /404/);
});

test('prefetch, and an ack of many', async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  for (const body of 'abcde') await publish(channel, '', queue, body);
  await channel.prefetch(2);
  const inbox = await consume(channel, queue);
  await inbox.next();
  const second = await inbox.next();
  await settle();
  assert.equal(inbox.messages.length, 0);
  channel.ack(second, true);
  assert.equal((await inbox.next()).content.toString(), 'c');
  assert.equal((await inbox.next()).content.toString(), 'd');
  await settle();
  assert.equal(inbox.messages.length, 0);
});

test('what is given back keeps its place and says so', async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  for (const body of 'abcd') await publish(channel, '', queue, body);
  const got = [await channel.get(queue), await channel.get(queue), await channel.get(queue)];
  channel.nack(got[1], false, true);
  channel.reject(got[2], true);
  channel.nack(got[0], false, true);
  const again = await channel.get(queue, { noAck: true });
  assert.equal(again.content.toString(), 'a');
  assert.equal(again.fields.redelivered, true);
  assert.deepEqual(await bodies(channel, queue), ['b', 'c', 'd']);
  assert.equal(await channel.get(queue), false);
});

test('all at once: nackAll, ackAll, recover', async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  for (const body of 'abc') await publish(channel, '', queue, body);
  const inbox = await consume(channel, queue);
  for (const expected of 'abc') assert.equal((await inbox.next()).content.toString(), expected);
  channel.nackAll(true);
  for (const expected of 'abc') assert.equal((await inbox.next()).content.toString(), expected);
  await channel.recover();
  for (const expected of 'abc') {
    const message = await inbox.next();
    assert.equal(message.content.toString(), expected);
    assert.equal(message.fields.redelivered, true);
  }
  channel.ackAll();
  await channel.cancel(inbox.consumerTag);
  assert.equal((await channel.checkQueue(queue)).messageCount, 0);
});

test('a consumer hears null when its queue is deleted', async (t) => {
  const connection = await connect(t);
  const channel = await openOn(connection);
  const { queue } = await channel.assertQueue(fresh(), { durable: false });
  const inbox = await consume(channel, queue);
  await (await openOn(connection)).deleteQueue(queue);
  assert.equal(await inbox.next(), null);
});

for (const size of [0, 1, 4088, 131_064, 131_065, 1_000_000, 10 * 1024 * 1024]) {
  test(`a body of ${size} bytes`, async (t) => {
    const channel = await open(t);
    const queue = await exclusiveQueue(channel);
    const body = Buffer.from(Uint8Array.from({ length: size }, (_, index) => index % 251));
    const inbox = await consume(channel, queue, { noAck: true });
    await publish(channel, '', queue, body);
    assert.ok((await inbox.next()).content.equals(body));
  });
}

test('properties come back', async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  const properties = {
    contentType: 'application/json', contentEncoding: 'gzip', headers: { k: 'v' }, deliveryMode: 2, priority: 5,
    correlationId: 'c-1', replyTo: 'answers', expiration: '60000', messageId: 'm-1', timestamp: 1609459200,
    type: 'created', userId: 'guest', appId: 'conformance', clusterId: undefined, // amqplib cannot send the last one
  };
  await publish(channel, '', queue, '{}', properties);
  assert.deepEqual({ ...(await channel.get(queue, { noAck: true })).properties }, properties);
});

test('headers of every type come back', async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  const headers = {
    true: true, false: false, null: null, byte: -128, short: -32768, int: -2147483648, long: 2 ** 40,
    double: Math.PI, 'large double': 1e300, text: 'grüße 🐇', 'empty text': '', bytes: Buffer.from([0, 255, 0]),
    array: [1, 'two', null, [true, { deep: -1 }]], 'empty array': [],
    table: { a: 1, b: { c: 'deep' } }, 'empty table': {},
    'typed byte': { '!': 'byte', value: 1 }, 'typed short': { '!': 'short', value: 1 },
    'typed int': { '!': 'int', value: 1 }, 'typed long': { '!': 'long', value: 1 },
    'typed float': { '!': 'float', value: 1.5 },
    time: { '!': 'timestamp', value: 1609459200 }, decimal: { '!': 'decimal', value: { digits: 31415, places: 4 } },
  };
  await publish(channel, '', queue, '', { headers });
  const got = (await channel.get(queue, { noAck: true })).properties.headers;
  // amqplib tells timestamps and decimals, not the widths of numbers.
  const numbers = { 'typed byte': 1, 'typed short': 1, 'typed int': 1, 'typed long': 1, 'typed float': 1.5 };
  assert.deepEqual(got, { ...headers, ...numbers });
});

test('a stuck consumer leaves the others alone', async (t) => {
  const channel = await open(t);
  const { queue: stuckQueue } = await channel.assertQueue(fresh('stuck'), { durable: false, autoDelete: true });
  const stuck = await open(t);
  await stuck.prefetch(1);
  await consume(stuck, stuckQueue);
  for (let round = 0; round < 100; round += 1) channel.sendToQueue(stuckQueue, Buffer.alloc(100_000));
  await channel.waitForConfirms();
  const queue = await exclusiveQueue(channel);
  const inbox = await consume(channel, queue, { noAck: true });
  for (let number = 0; number < 300; number += 1) {
    await publish(channel, '', queue, `${number}`);
    assert.equal((await inbox.next()).content.toString(), `${number}`);
  }
});

test('counts of declare, purge and delete', async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  await consume(channel, await exclusiveQueue(channel));
  for (const body of 'abc') await publish(channel, '', queue, body);
  assert.deepEqual(await channel.checkQueue(queue), { queue, messageCount: 3, consumerCount: 0 });
  assert.deepEqual(await channel.purgeQueue(queue), { messageCount: 3 });
  assert.deepEqual(await channel.deleteQueue(queue), { messageCount: 0 });
  assert.deepEqual(await channel.deleteQueue(queue), { messageCount: 0 });
});

test('the channel closes in order while much is on its way', async (t) => {
  const connection = await connect(t);
  const channel = await openOn(connection);
  const queue = await exclusiveQueue(channel);
  for (let number = 0; number < 2000; number += 1) channel.sendToQueue(queue, Buffer.alloc(1000));
  await channel.close();
  const inbox = await consume(await openOn(connection), queue, { noAck: true });
  for (let number = 0; number < 2000; number += 1) await inbox.next();
});

test("the consumer's tag is the client's, or the server's", async (t) => {
  const channel = await open(t);
  const queue = await exclusiveQueue(channel);
  assert.equal((await consume(channel, queue, { consumerTag: 'mine' })).consumerTag, 'mine');
  assert.match((await consume(channel, queue)).consumerTag, /^amq\.ctag-/);
  const reason = next(channel, 'close');
  await channel.close();
  await reason;
});
