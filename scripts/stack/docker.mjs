// The last resort: the two servers of docker-compose.yml under a project name of this checkout.

import { join } from 'node:path';
import { logs, root, stackName } from './place.mjs';
import { run, succeeds } from './process.mjs';

let last = Promise.resolve();

/** A client without an engine or without the plugin is met often: both are asked. */
export async function isAvailable() {
  return (await succeeds('docker', ['compose', 'version'])) && succeeds('docker', ['info']);
}

/** Starts one service and waits until it is healthy; one at a time, they share a network. */
export function up(service, ports) {
  const env = { ...process.env };
  for (const [name, port] of Object.entries(ports)) env[name] = String(port);
  const args = ['compose', '-p', stackName, 'up', '-d', '--wait', service];
  const start = () =>
    run('docker', args, { cwd: root, env, what: args.join(' '), log: join(logs, 'docker.log') });
  const started = last.then(start);
  last = started.catch(() => {});
  return started;
}

export function down() {
  const args = ['compose', '-p', stackName, 'down', '-v'];
  return run('docker', args, { cwd: root, what: args.join(' '), log: join(logs, 'docker-down.log') });
}

/** The command line of `rabbitmqctl` in the container. */
export function ctlCommand(args) {
  return ['docker', ['compose', '-p', stackName, 'exec', '-T', 'rabbitmq', 'rabbitmqctl', ...args]];
}
