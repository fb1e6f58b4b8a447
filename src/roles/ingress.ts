import { startConsumer } from '../broker/consumer.ts';
import { namesOf } from '../broker/topology.ts';
import { createCommandReader } from '../commands/handle.ts';
import { commandHandlers, subjectOf } from '../commands/handlers.ts';
import { ENVELOPE_BYTES } from '../domain/requests/body.ts';
import { createEventAcceptor } from '../pipeline/accept/events.ts';
import { createReminderAcceptor } from '../pipeline/accept/reminders.ts';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import { inScope, type Stop } from '../runtime/scope.ts';
import { requireMigrated } from '../store/migrate.ts';
import { isAlive } from '../store/pool.ts';
import { measureConsumer, measureParts } from './measure.ts';
import { openCalendars, openParts, openRescheduler, type Shared } from './parts.ts';
import { addConsumerProbe, addPartsProbes } from './readiness.ts';

const PREFETCH = 1_000;

/** The ingress role: takes commands of other services over AMQP. */
export function startIngress(config: Config, log: Log, { meters, traces, readiness }: Shared): Promise<Stop> {
  return inScope(async (scope) => {
    const parts = await openParts(scope, config, log);
    await requireMigrated(parts.pool);
    measureParts(meters, parts);
    const names = namesOf(config.broker.prefix);
    addPartsProbes(readiness, parts, names);
    const { timeoutMs } = config.egress;
    const common = { db: parts.pool, announcer: parts.announcer, timeoutMs, traces };
    const events = scope.own(createEventAcceptor(common), (a) => a.close());
    const calendars = openCalendars(config);
    const reminders = scope.own(createReminderAcceptor({ ...common, calendars }), (a) => a.close());
    const rescheduler = openRescheduler(parts, config, calendars);
    const answered = meters.counter('duepost_commands_total');
    const consumer = await scope.own(
      startConsumer({
        config: config.broker,
        log,
        queue: names.commandsQueue,
        prefetch: PREFETCH,
        handle: createCommandReader({
          publisher: parts.publisher,
          log,
          rejected: names.commandsRejected,
          prefix: config.broker.prefix,
          maxBodyBytes: config.limits.maxPayloadBytes + ENVELOPE_BYTES,
          traces,
          onAnswered: (command, result) => answered([command, result]),
          handlers: commandHandlers({
            events,
            reminders,
            rescheduler,
            maxPayloadBytes: config.limits.maxPayloadBytes,
          }),
          subjectOf,
        }),
        isHealthy: async () =>
          // While the broker takes nothing, what is refused could not be set aside: it would be given back and counted.
          (await isAlive(parts.pool)) && parts.publisher.isReady(),
      }),
      (c) => c.stop(),
    );
    measureConsumer(meters, 'commands', consumer);
    addConsumerProbe(readiness, 'ingress', {
      consumer,
      queue: names.commandsQueue,
      setAside: names.commandsRejected,
    });
    log.info('ingress_started', { queue: names.commandsQueue });
  });
}
