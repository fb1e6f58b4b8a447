// PostgreSQL and RabbitMQ for one run alone, which may stop, kill, starve and freeze them.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { local, logs } from '../stack/place.mjs';
import { startPostgres, stopPostgres } from '../stack/postgres.mjs';
import { isAlive, signalProcess, waitUntil } from '../stack/process.mjs';
import { ctlCommand, startRabbitmq, stopRabbitmq } from '../stack/rabbitmq.mjs';
import { Failure } from '../stack/report.mjs';

const usualMemory = ['set_vm_memory_high_watermark', '0.4'];
const noMemory = ['set_vm_memory_high_watermark', 'absolute', '1MB'];

/** Starts both, empty. `signal` gives up the start; `stop` ends them and removes what they kept. */
export async function startServers(signal) {
  mkdirSync(logs, { recursive: true });
  let postgres;
  let rabbitmq;
  // Read at every connection: a server that comes back may listen somewhere else.
  const targets = {
    database: { targetHost: '127.0.0.1', targetPort: 0 },
    broker: { targetHost: '127.0.0.1', targetPort: 0 },
  };

  async function startDatabase() {
    const record = (server) => {
      postgres = server;
      targets.database.targetPort = server.port;
    };
    await startPostgres({ fsync: false, record, signal });
    if (postgres.kind !== 'process')
      throw new Failure('the soak run needs a PostgreSQL of its own, not one in Docker');
  }

  async function startBroker({ keepsData = false } = {}) {
    const record = (server) => {
      rabbitmq = server;
      targets.broker.targetPort = server.port;
    };
    await startRabbitmq({ record, signal, keepsData });
    if (rabbitmq.kind !== 'process')
      throw new Failure('the soak run needs a RabbitMQ of its own, not one in Docker');
  }

  async function ctl(args) {
    const [file, ctlArgs, env] = ctlCommand(rabbitmq, args);
    const child = spawn(file, ctlArgs, { env, stdio: 'ignore' });
    const code = await new Promise((resolve, reject) => child.once('error', reject).once('exit', resolve));
    if (code !== 0) throw new Error(`rabbitmqctl ${args.join(' ')} ended with ${code}`);
  }

  await Promise.all([startDatabase(), startBroker()]);

  return {
    targets,
    databaseUrl: postgres.url,
    amqpUrl: rabbitmq.url,
    faults: {
      async restartDatabase() {
        signalProcess(postgres.pid, 'SIGQUIT');
        const isGone = () => !existsSync(join(postgres.data, 'postmaster.pid')) || !isAlive(postgres);
        await waitUntil(isGone, { withinMs: 20_000 });
        await startDatabase();
      },
      async restartBroker() {
        await ctl(['stop_app']);
        await ctl(['start_app']);
      },
      async crashBroker() {
        await stopRabbitmq(rabbitmq);
        await startBroker({ keepsData: true });
      },
      async loseBroker() {
        await stopRabbitmq(rabbitmq);
        await startBroker();
      },
      freezeBroker: (on) => signalProcess((rabbitmq.beam ?? rabbitmq).pid, on ? 'SIGSTOP' : 'SIGCONT'),
      alarmBroker: (on) => ctl(on ? noMemory : usualMemory),
    },
    async stop() {
      if (rabbitmq !== undefined) await stopRabbitmq(rabbitmq);
      if (postgres !== undefined) {
        await stopPostgres(postgres);
        rmSync(postgres.data, { recursive: true, force: true });
      }
      for (const folder of ['postgres', 'rabbitmq'])
        rmSync(join(local, folder), { recursive: true, force: true });
    },
  };
}
