// npm run services -- up | down | status | reset | ctl <rabbitmqctl arguments>

import { spawnSync } from 'node:child_process';
import { runScript } from './stack/command.mjs';
import { logs } from './stack/place.mjs';
import { ctlCommand } from './stack/rabbitmq.mjs';
import { Failure, say } from './stack/report.mjs';
import {
  checkServers,
  closeStack,
  createEnvironment,
  joinStack,
  leaveStack,
  resetStack,
} from './stack/stack.mjs';
import { readState } from './stack/state.mjs';

const usage = 'usage: npm run services -- up | down | status | reset | ctl <arguments of rabbitmqctl>';
const [command, ...args] = process.argv.slice(2);

async function up({ signal }) {
  const name = 'services up';
  await joinStack({ name, signal });
  await leaveStack({ name, keep: true });
  const env = createEnvironment('development');
  const { postgres, rabbitmq } = readState();
  const parts = [
    postgres && `PostgreSQL on ${postgres.port}`,
    rabbitmq && `RabbitMQ on ${rabbitmq.port}, management at ${rabbitmq.managementUrl}`,
    `logs in ${logs}`,
    'stop with: npm run services -- down',
  ];
  say('stack', parts.filter(Boolean).join(' · '));
  const names = [
    'DUEPOST_DATABASE_URL',
    'DUEPOST_AMQP_URL',
    'DUEPOST_MANAGEMENT_URL',
    'DUEPOST_SEALING_KEY_FILE',
  ];
  for (const name of names) {
    if (env[name] !== undefined) process.stdout.write(`export ${name}='${env[name]}'\n`);
  }
  return 0;
}

async function status() {
  const checks = await checkServers();
  for (const { name, server, running } of checks) {
    const where = running
      ? `running, ${[server.url, server.managementUrl].filter(Boolean).join(', ')}`
      : 'not running';
    process.stdout.write(`${name.padEnd(10)}  ${where}\n`);
  }
  return checks.every(({ running }) => running) ? 0 : 1;
}

async function ctl() {
  const rabbitmq = (await checkServers()).find(({ name }) => name === 'rabbitmq');
  if (!rabbitmq.running) throw new Failure('RabbitMQ is not running here: npm run services -- up');
  const [file, ctlArgs, env] = ctlCommand(rabbitmq.server, args);
  return spawnSync(file, ctlArgs, { env, stdio: 'inherit' }).status ?? 1;
}

const commands = {
  up,
  down: () => closeStack('services down'),
  status,
  reset: () => resetStack('services reset'),
  ctl,
};

await runScript(async (watch) => {
  if (!Object.hasOwn(commands, command ?? '')) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  return (await commands[command](watch)) ?? 0;
});
