import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { namesOf, topologyOf } from '../../broker/topology.ts';
import { applyTopology } from '../../broker/topology-apply.ts';
import { createKey, revokeKey } from '../../pipeline/operate/keys.ts';
import { startOwnProcess } from '../../runtime/own-process.ts';
import { migrate } from '../../store/migrate.ts';
import { findRemindersByKey, type Reminder } from '../../store/reminders.ts';
import { CheckFailed } from '../check-failed.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions } from '../context.ts';
import { describeEvidence, type Evidence, formatEvidence } from './evidence.ts';
import { dateIn, eventually, openStand, requirePractice, type Stand, type Target } from './stand.ts';

/** `duepost demo`: the main job on sample data, on this stack, from the schema to the evidence. */
export function addDemo(program: Command): void {
  withCommonOptions(program.command('demo'))
    .description(
      'the main job on sample data: schedule by every entrance, deliver, prove; cleans up and ends by itself',
    )
    .action((options: CommonOptions) =>
      inContext(options, async (context) => {
        requirePractice(context.config, 'the demonstration');
        const evidence = await demonstrate(context, createTeller(context));
        const isProven = evidence.every((one) => one.state === 'delivered' && one.effects === 1);
        context.print({ ok: isProven, reminders: evidence }, () =>
          ['', 'Evidence', '', ...evidence.map(formatEvidence), '', CHECK].join('\n'),
        );
        if (!isProven) throw new CheckFailed();
      }),
    );
}

/** Whoever shows evidence of itself should say how others check it. */
const CHECK =
  'On an installation of yours, others check such evidence without it: duepost audit export --contract REF --out FILE, then duepost audit verify FILE --public-key KEY.pem (docs/evidence.md)';

/** Tells what happens, a few readable lines at a time; a program wants the end alone. */
function createTeller(context: Context): (step: string, ...lines: string[]) => void {
  return (step, ...lines) => {
    if (context.json) return;
    const [first = '', ...rest] = lines;
    context.print(undefined, () =>
      [`${step.padEnd(12)}${first}`, ...rest.map((line) => `${' '.repeat(12)}${line}`)].join('\n'),
    );
  };
}

async function demonstrate(context: Context, tell: ReturnType<typeof createTeller>): Promise<Evidence[]> {
  const { config, log, scope, actor } = context;
  const applied = await migrate(config.database, log);
  tell('schema', applied.length === 0 ? 'up to date' : `${applied.length} migrations applied`);
  const problems = await applyTopology(config.broker, log);
  if (problems.length > 0) throw new Error(problems.join('; '));
  const { queues, exchanges } = topologyOf(config.broker.prefix);
  tell('broker', `${exchanges.length} exchanges and ${queues.length} queues named ${config.broker.prefix}.…`);

  const stand = await openStand(scope, { config, log, actor });
  const [api] = await Promise.all([
    stand.startRoles(['api']),
    ...['ingress', 'worker', 'reconciler'].map((role) => stand.startRoles([role])),
  ]);
  const url = /at (http\S+)/.exec(await api.heard(/\bat http/))?.[1] ?? '';
  tell('roles', `ingress, worker, reconciler and api (at ${url}) run, each a process of its own`);

  const good = await stand.openTarget('demo-notices', {});
  const flaky = await stand.openTarget('demo-flaky', {
    answers: [503, 503, 200],
    policy: { kind: 'schedule', retry_schedule: [0, 1, 1], max_attempts: 5 },
  });
  tell(
    'endpoints',
    `${good.endpoint.name} answers 200; ${flaky.endpoint.name} answers 503 twice first`,
    'both are receivers that count a key once and check every signature',
  );

  const run = randomBytes(3).toString('hex');
  const byAmqp = await scheduleOverAmqp(stand, good, `pol-7781-${run}`);
  tell('AMQP', ...describe(byAmqp, 'overdue: it goes at once'));
  const byHttp = await scheduleOverHttp(stand, flaky, { url, contract: `pol-7782-${run}` });
  tell('HTTP', ...describe(byHttp, 'overdue: it goes at once, and meets 503 twice'));
  const byCli = await scheduleByCommand(stand, good, `pol-7783-${run}`);
  tell('CLI', ...describe(byCli, 'far ahead: a row, and no message yet'));
  const moved = await moveOverAmqp(stand, byCli);
  tell('AMQP', ...describe(moved, `renewal date moved from ${byCli.renewalDate}: due now`));

  const evidence: Evidence[] = [];
  for (const [reminder, target] of [
    [byAmqp, good],
    [byHttp, flaky],
    [moved, good],
  ] as const) {
    const outcome = await stand.ended(reminder.deliveryId);
    const one = describeEvidence(reminder, outcome, target.receiver);
    tell('delivery', `${one.contract_ref}: ${one.attempts.map((a) => a.status).join(', ')} → ${one.state}`);
    evidence.push(one);
  }
  return evidence;
}

function describe(reminder: Reminder, what: string): string[] {
  return [
    `${reminder.contractRef} renews ${reminder.renewalDate}, notice ${reminder.noticePeriod} in ${reminder.jurisdiction}`,
    `due ${reminder.dueAt.toISOString()}, ${what}`,
  ];
}

/** What a producer sends, by whatever entrance. */
function bodyOf({ endpoint }: Target, contract: string): Record<string, unknown> {
  return {
    idempotency_key: contract,
    contract_ref: contract,
    endpoint: endpoint.name,
    renewal_date: dateIn(60),
    notice_period: 'P90D',
    jurisdiction: 'DE-BY',
    payload: { product: 'household', premium_eur: '182.40' },
  };
}

async function sendCommand(stand: Stand, routingKey: string, body: object): Promise<void> {
  await stand.parts.publisher.publish({
    exchange: namesOf(stand.config.broker.prefix).commands,
    routingKey,
    body: Buffer.from(JSON.stringify({ v: 1, ...body })),
  });
}

async function scheduleOverAmqp(stand: Stand, target: Target, contract: string): Promise<Reminder> {
  await sendCommand(stand, 'reminder.schedule', bodyOf(target, contract));
  return findReminder(stand, contract);
}

async function scheduleOverHttp(
  stand: Stand,
  target: Target,
  to: { readonly url: string; readonly contract: string },
): Promise<Reminder> {
  const by = { actor: stand.actor, reason: 'the demonstration is over' };
  const { apiKey, key } = await createKey(
    stand.parts.pool,
    { name: `demo ${to.contract}`, scopes: ['publish'] },
    by,
  );
  try {
    const response = await fetch(new URL('/v1/reminders', to.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify(bodyOf(target, to.contract)),
    });
    if (response.status !== 202)
      throw new Error(`POST /v1/reminders: ${response.status} ${await response.text()}`);
  } finally {
    await revokeKey(stand.parts.pool, apiKey.keyId, by);
  }
  return findReminder(stand, to.contract);
}

async function scheduleByCommand(stand: Stand, { endpoint }: Target, contract: string): Promise<Reminder> {
  const options = {
    contract,
    key: contract,
    endpoint: endpoint.name,
    'renewal-date': dateIn(400),
    notice: 'P90D',
    jurisdiction: 'DE-BY',
    payload: JSON.stringify({ product: 'household', premium_eur: '182.40' }),
  };
  const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const command = startOwnProcess(['remind', '--json', ...given]);
  const { code } = await command.ended;
  if (code !== 0) throw new Error(`duepost remind ended with ${code}: ${command.output()}`);
  return findReminder(stand, contract);
}

async function moveOverAmqp(stand: Stand, reminder: Reminder): Promise<Reminder> {
  const { contractRef, idempotencyKey, revision } = reminder;
  await sendCommand(stand, 'reminder.reschedule', { contract_ref: contractRef, renewal_date: dateIn(60) });
  return eventually(async () => {
    const moved = await findReminder(stand, idempotencyKey);
    return moved.revision > revision ? moved : undefined;
  });
}

/** The reminder of a key, as soon as it is there. */
function findReminder(stand: Stand, key: string): Promise<Reminder> {
  return eventually(async () => (await findRemindersByKey(stand.parts.pool, [key])).get(key));
}
