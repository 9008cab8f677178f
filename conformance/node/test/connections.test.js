// Logging in, limits, heartbeats, and channels by the thousand.
import assert from 'node:assert/strict';
import test from 'node:test';
import amqp from 'amqplib';
import { address, assertReason, connect, exclusiveQueue, fresh, openOn, settle, uri } from '../broker.js';

test('the broker says what it is', async (t) => {
  const { serverProperties } = (await connect(t)).connection;
  for (const name of ['product', 'version', 'platform', 'copyright', 'information', 'cluster_name']) {
    assert.ok(serverProperties[name], name);
  }
  assert.equal(serverProperties.capabilities.publisher_confirms, true);
  assert.equal(serverProperties.capabilities.consumer_cancel_notify, true);
});

test('a wrong password is refused', async () => {
  await assert.rejects(amqp.connect(address({ password: 'no' })), (error) => {
    assert.match(error.message, /403/);
    assert.match(error.message, /ACCESS[-_]REFUSED/);
    return true;
  });
});

test('AMQPLAIN is spoken', async (t) => {
  const { username, password } = new URL(uri);
  const connection = await amqp.connect(uri, { credentials: amqp.credentials.amqplain(username, password) });
  t.after(() => connection.close());
  await connection.createChannel();
});

test('an unknown vhost is refused', async () => {
  // amqplib does not pass on the reason; the other clients check it.
  await assert.rejects(amqp.connect(address({ pathname: '/nowhere' })), /ConnectionClose/);
});

test('a connection at the least frame size', async (t) => {
  const connection = await connect(t, { search: '?frameMax=4096&channelMax=10' });
  const channel = await openOn(connection);
  const queue = await exclusiveQueue(channel);
  channel.sendToQueue(queue, Buffer.alloc(50_000, 'x'));
  await channel.waitForConfirms();
  assert.equal((await channel.get(queue, { noAck: true })).content.length, 50_000);
});

test('2,047 channels at once', async (t) => {
  const connection = await connect(t);
  const channels = await Promise.all(Array.from({ length: 2047 }, () => connection.createChannel()));
  const queue = await exclusiveQueue(channels.at(-1));
  for (const channel of channels.slice(0, 20)) channel.sendToQueue(queue, Buffer.from('x'));
  await assert.rejects(connection.createChannel(), /No channels left/);
});

test('a channel number is free right after close', async (t) => {
  const connection = await connect(t, { search: '?channelMax=1' });
  for (let round = 0; round < 200; round += 1) {
    const channel = await connection.createChannel();
    await channel.prefetch(1);
    await channel.close();
  }
  for (let round = 0; round < 50; round += 1) {
    const channel = await openOn(connection);
    await assert.rejects(channel.checkQueue('conformance.missing'), (error) => {
      assertReason(error, 404, "NOT_FOUND - no queue 'conformance.missing' in vhost '/'");
      return true;
    });
  }
});

test('a hundred connections at once', async () => {
  const connections = await Promise.all(Array.from({ length: 100 }, () => amqp.connect(uri)));
  await Promise.all(connections.map(async (connection) => exclusiveQueue(await connection.createChannel())));
  await Promise.all(connections.map((connection) => connection.close()));
});

test('an idle connection lives by its heartbeats', async (t) => {
  const connection = await connect(t, { search: '?heartbeat=1' });
  const channel = await connection.createChannel();
  await settle(4000);
  await exclusiveQueue(channel);
});

test('an exclusive queue is free once its connection is closed', async () => {
  const name = fresh();
  for (let round = 0; round < 20; round += 1) {
    const connection = await amqp.connect(uri);
    const channel = await connection.createChannel();
    await channel.assertQueue(name, { exclusive: true });
    await connection.close();
  }
});

test('a secret may be renewed', async (t) => {
  const connection = await connect(t);
  await connection.updateSecret(Buffer.from('guest'), 'it is about to expire');
  await connection.createChannel();
});
