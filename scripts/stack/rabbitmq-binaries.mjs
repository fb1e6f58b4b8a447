// Finds RabbitMQ's own scripts, or installs the package where that needs nobody's leave.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { logs } from './place.mjs';
import { run } from './process.mjs';
import { Failure, say } from './report.mjs';

function listReleases() {
  const parent = '/usr/lib/rabbitmq/lib';
  return existsSync(parent) ? readdirSync(parent).map((name) => join(parent, name, 'sbin')) : [];
}

function listPath() {
  return (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
}

/** Debian's wrapper runs `su rabbitmq` with that user's cookie and folders, so it cannot talk to our node. */
function isWrapper(folder) {
  return (
    readFileSync(join(folder, 'rabbitmq-server'), 'utf8').includes('RABBITMQ_USER') ||
    ['/usr/sbin', '/sbin'].includes(folder)
  );
}

/** The folder with `rabbitmq-server` and `rabbitmqctl`, or undefined. */
export function findRabbitmq() {
  const known = [
    '/usr/lib/rabbitmq/bin',
    ...listReleases(),
    '/opt/homebrew/opt/rabbitmq/sbin',
    '/usr/local/opt/rabbitmq/sbin',
  ];
  const isThere = (folder) => existsSync(join(folder, 'rabbitmq-server'));
  return known.find(isThere) ?? listPath().find((folder) => isThere(folder) && !isWrapper(folder));
}

/** Erlang's port mapper; Debian puts it on PATH, others only below Erlang's own root. */
export function findEpmd() {
  const onPath = listPath()
    .map((folder) => join(folder, 'epmd'))
    .find((file) => existsSync(file));
  if (onPath !== undefined) return onPath;
  try {
    const show = 'io:format("~s", [code:root_dir()]), halt().';
    const erlang = execFileSync('erl', ['-noshell', '-eval', show], { encoding: 'utf8' });
    const runtime = readdirSync(erlang).find((name) => name.startsWith('erts-'));
    const file = join(erlang, runtime ?? '', 'bin', 'epmd');
    if (existsSync(file)) return file;
  } catch {
    // No Erlang at all.
  }
  throw new Failure('epmd, a part of Erlang that RabbitMQ needs, was not found on PATH');
}

export function canInstall() {
  return process.env.DUEPOST_NO_INSTALL !== '1' && process.getuid() === 0 && existsSync('/usr/bin/apt-get');
}

const policy = '/usr/sbin/policy-rc.d';
const policyText =
  '#!/bin/sh\n# Written by duepost while it installs rabbitmq-server: do not start it. Safe to delete.\nexit 101\n';

/** The package would start a broker of its own on the standard port: a policy that lasts as long as the install says no. */
async function withoutServiceStart(body) {
  const isOurs = !existsSync(policy) || readFileSync(policy, 'utf8') === policyText;
  if (isOurs) writeFileSync(policy, policyText, { mode: 0o755 });
  try {
    return await body();
  } finally {
    if (isOurs) rmSync(policy, { force: true });
  }
}

/** Installs Debian's package unattended. */
export async function installRabbitmq(signal) {
  say('rabbitmq', 'not installed: installing the package rabbitmq-server (DUEPOST_NO_INSTALL=1 forbids it)');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' };
  const options = { env, log: join(logs, 'apt.log'), signal };
  await run('apt-get', ['update', '-qq'], { ...options, what: 'apt-get update' });
  const args = ['install', '-y', '--no-install-recommends', 'rabbitmq-server'];
  await withoutServiceStart(() => run('apt-get', args, { ...options, what: `apt-get ${args.join(' ')}` }));
  say('rabbitmq', 'package installed');
}
