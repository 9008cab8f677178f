// Mistakes, with the code and the exact text of the broker's answer.
import assert from 'node:assert/strict';
import test from 'node:test';
import { assertReason, connect, exclusiveQueue, fresh, next, open, openOn, publish } from '../broker.js';

// Each function makes its mistake with a channel and an unused name.
const rejected = [
  ['check a missing queue', 404, (name) => `NOT_FOUND - no queue '${name}' in vhost '/'`,
    (channel, name) => channel.checkQueue(name)],
  ['check a missing exchange', 404, (name) => `NOT_FOUND - no exchange '${name}' in vhost '/'`,
    (channel, name) => channel.checkExchange(name)],
  ['consume a missing queue', 404, (name) => `NOT_FOUND - no queue '${name}' in vhost '/'`,
    (channel, name) => channel.consume(name, () => {})],
  ['get from a missing queue', 404, (name) => `NOT_FOUND - no queue '${name}' in vhost '/'`,
    (channel, name) => channel.get(name)],
  ['purge a missing queue', 404, (name) => `NOT_FOUND - no queue '${name}' in vhost '/'`,
    (channel, name) => channel.purgeQueue(name)],
  ['a reserved name', 403, () => "ACCESS_REFUSED - exchange name 'amq.own' contains reserved prefix 'amq.*'",
    (channel) => channel.assertExchange('amq.own', 'direct')],
  ['delete the default exchange', 403, () => 'ACCESS_REFUSED - operation not permitted on the default exchange',
    (channel) => channel.deleteExchange('')],
  ['delete a queue that is not empty', 406, (name) => `PRECONDITION_FAILED - queue '${name}' in vhost '/' not empty`,
    async (channel, name) => {
      await channel.assertQueue(name, { exclusive: true });
      await publish(channel, '', name, 'x');
      return channel.deleteQueue(name, { ifEmpty: true });
    }],
  ['another type of exchange', 406,
    (name) => `PRECONDITION_FAILED - inequivalent arg 'type' for exchange '${name}' in vhost '/': `
      + "received 'topic' but current is 'fanout'",
    async (channel, name) => {
      await channel.assertExchange(name, 'fanout', { autoDelete: true, durable: false });
      const queue = await exclusiveQueue(channel);
      await channel.bindQueue(queue, name, ''); // it goes with its binding
      return channel.assertExchange(name, 'topic', { autoDelete: true, durable: false });
    }],
  ['a second consumer beside an exclusive one', 403,
    (name) => `ACCESS_REFUSED - queue '${name}' in vhost '/' in exclusive use`,
    async (channel, name) => {
      await channel.assertQueue(name, { exclusive: true });
      await channel.consume(name, () => {}, { exclusive: true });
      return channel.consume(name, () => {});
    }],
];

for (const [what, code, text, mistake] of rejected) {
  test(`${code}: ${what}`, async (t) => {
    const connection = await connect(t);
    const channel = await openOn(connection);
    const name = fresh();
    await assert.rejects(mistake(channel, name), (error) => {
      assertReason(error, code, text(name));
      return true;
    });
    await exclusiveQueue(await openOn(connection));
  });
}

test("405: another connection's exclusive queue", async (t) => {
  const queue = await exclusiveQueue(await open(t));
  await assert.rejects((await open(t)).checkQueue(queue), (error) => {
    const text = `cannot obtain exclusive access to locked queue '${queue}' in vhost '/'. It could be originally `
      + 'declared on another connection or the exclusive property value does not match that of the original '
      + 'declaration.';
    assertReason(error, 405, `RESOURCE_LOCKED - ${text}`);
    return true;
  });
});

// What has no answer: the reason comes as the channel's 'error' event.
const evented = [
  ['publish to a missing exchange', 404, "NOT_FOUND - no exchange 'conformance.missing' in vhost '/'",
    (channel) => channel.publish('conformance.missing', '', Buffer.from('x'))],
  ['ack an unknown tag', 406, 'PRECONDITION_FAILED - unknown delivery tag 99',
    (channel) => channel.ack({ fields: { deliveryTag: 99 } })],
  ["another's user-id", 406, "PRECONDITION_FAILED - user_id property set to 'a' but authenticated user was 'guest'",
    (channel) => channel.publish('', 'q', Buffer.from('x'), { userId: 'a' })],
];

for (const [what, code, text, mistake] of evented) {
  test(`${code}: ${what}`, async (t) => {
    const channel = await open(t);
    const reason = next(channel, 'error');
    mistake(channel);
    assertReason(await reason, code, text);
  });
}

test('530: a consumer tag used twice closes the connection', async (t) => {
  const connection = await connect(t);
  const channel = await openOn(connection);
  const queue = await exclusiveQueue(channel);
  const reason = next(connection, 'error');
  await channel.consume(queue, () => {}, { consumerTag: 'twice' });
  await assert.rejects(channel.consume(queue, () => {}, { consumerTag: 'twice' }));
  assertReason(await reason, 530, "NOT_ALLOWED - attempt to reuse consumer tag 'twice'");
});
