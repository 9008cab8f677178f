// The first message, with amqplib (https://www.npmjs.com/package/amqplib).
const amqp = require("amqplib");

async function main() {
  const connection = await amqp.connect("amqp://guest:guest@localhost:5672/");
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  channel.sendToQueue(queue, Buffer.from("Hello from Node.js!"));
  await channel.waitForConfirms();
  const message = await channel.get(queue, { noAck: true });
  console.log(message.content.toString());
  await connection.close();
}

main();
