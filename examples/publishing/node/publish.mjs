// Sends one command to duepost and waits until it is committed there.
//
//   node publish.mjs ROUTING_KEY < command.json
//
// Exit codes: 0 accepted, 65 refused (either way the answer is on stdout), 64 wrong usage,
// 75 no answer: the outcome is unknown, so run it again with the same command and key,
// 77 the broker does not let this user in, or send that.

import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import amqp from 'amqplib';

const URL = process.env.AMQP_URL ?? 'amqp://guest:guest@127.0.0.1:5672';
const EXCHANGE = process.env.DUEPOST_COMMANDS ?? 'duepost.commands';
const PATIENCE_MS = 1000 * Number(process.env.ANSWER_SECONDS ?? 10);
const TRIES = 5;
// The broker's own way back: no queue to declare, so the user needs no right but to publish.
const REPLY_TO = 'amq.rabbitmq.reply-to';

/** One try; rejects when nobody knows what became of the command. */
async function ask(routingKey, body, key) {
  const connection = await amqp.connect(URL, { heartbeat: 10, timeout: PATIENCE_MS });
  try {
    return await new Promise((resolve, reject) => {
      connection.on('error', reject);
      connection.on('close', () => reject(new Error('the connection was closed')));
      setTimeout(() => reject(new Error('no answer in time')), PATIENCE_MS).unref();
      exchangeMessages(connection, { routingKey, body, key }).then(resolve, reject);
    });
  } finally {
    await connection.close().catch(() => {});
  }
}

async function exchangeMessages(connection, { routingKey, body, key }) {
  const channel = await connection.createConfirmChannel();
  const correlationId = randomUUID();
  const answered = new Promise((resolve, reject) => {
    channel.on('error', reject);
    channel.on('return', () => reject(new Error(`no queue behind ${EXCHANGE}: apply the topology`)));
    const onAnswer = (message) => {
      if (message?.properties.correlationId === correlationId) resolve(message.content.toString());
    };
    channel.consume(REPLY_TO, onAnswer, { noAck: true }).catch(reject);
  });
  channel.publish(EXCHANGE, routingKey, body, {
    persistent: true,
    mandatory: true, // tell us if no queue takes it
    contentType: 'application/json',
    messageId: key,
    replyTo: REPLY_TO,
    correlationId,
  });
  // The confirm says that the broker has it; the answer, that duepost has committed it.
  const [answer] = await Promise.all([answered, channel.waitForConfirms()]);
  return answer;
}

function readKey(body) {
  try {
    return JSON.parse(body.toString()).idempotency_key;
  } catch {
    return undefined;
  }
}

/** Whether the broker will not have this user do that: trying again changes nothing. */
function isForbidden({ message }) {
  // It ends a connection to a virtual host that is not this user's without the driver telling why.
  return /ACCESS.REFUSED|ConnectionOpenOk; got <ConnectionClose/.test(message);
}

const routingKey = process.argv[2];
const body = await buffer(process.stdin);
const key = readKey(body);
if (routingKey === undefined || typeof key !== 'string') {
  console.error('usage: node publish.mjs ROUTING_KEY < command.json, with an idempotency_key in it');
  process.exit(64);
}

let answer;
for (let n = 1; n <= TRIES && answer === undefined; n += 1) {
  try {
    // The same bytes under the same key each time: however many of them arrive, they are one thing.
    answer = await ask(routingKey, body, key);
  } catch (error) {
    if (isForbidden(error)) {
      console.error(`forbidden: ${error.message}`);
      process.exit(77);
    }
    console.error(`try ${n} of ${TRIES}: ${error.message}`);
    await sleep(PATIENCE_MS / 10);
  }
}
if (answer === undefined) process.exit(75);
console.log(answer);
// A refusal is final: the same command would be refused again.
process.exitCode = JSON.parse(answer).ok ? 0 : 65;
