import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { type RunningCli, startCli } from '../support/cli.ts';
import { forge, openDestination, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

/** A line of its own, a screen that is wiped, text that runs backwards, and two line ends that are none in ASCII. */
const EVIL = '\r\n{"level":"info","event":"forged"}\n\u001b[2J\u0085\u2028\u202e';
let product: TestProduct;
let client: AmqpClient;

beforeAll(async () => {
  product = await openTestProduct({ env: { ...QUICK, DUEPOST_LOG_LEVEL: 'debug' } });
  client = await openAmqpClient(product);
});

afterAll(async () => {
  await client.close();
  await product.close();
});

async function provoke(running: RunningCli): Promise<string> {
  const destination = await openDestination(product, { answers: [404] });
  await client.call(`event.${EVIL.slice(0, 40)}`, Buffer.from(JSON.stringify({ v: 1, payload: EVIL })), {
    messageId: EVIL,
  });
  await client.call(
    'event.publish',
    Buffer.from(JSON.stringify({ v: 1, type: EVIL, payload: {}, endpoint: EVIL })),
    {
      messageId: EVIL,
    },
  );
  await forge(product, `not a wake-up ${EVIL}`);
  await running.says('wakeup_not_understood');
  await destination.receiver.close();
  running.child.kill('SIGTERM');
  return (await running.ended).stderr;
}

test.each(['json', 'human'])('text from outside forges no line of the %s log', async (format) => {
  const running = startCli(['start'], { ...product.env, DUEPOST_LOG_FORMAT: format });
  await running.says(format === 'json' ? '"event":"started"' : ' started ');
  const text = await until('the log', () => provoke(running));
  const lines = text.trimEnd().split('\n');
  expect(lines.filter((line) => !/^(\{"at":"2|2\d{3}-|duepost: )/.test(line))).toEqual([]);
  expect(lines.filter((line) => line.startsWith('{"level"') || line.startsWith('{"event":"forged"'))).toEqual(
    [],
  );
  expect(/[\p{Cc}\u2028\u2029\u202e]/u.exec(text.replaceAll('\n', ''))).toBe(null);
});
