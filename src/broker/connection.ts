import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import { backoffMs, pause } from '../runtime/backoff.ts';
import type { Log } from '../runtime/log.ts';
import { Outage, reasonOf } from '../runtime/outage.ts';
import { parseBrokerUrl } from './broker-url.ts';

/** Where the broker is and how patient to be with it. */
export interface BrokerConfig {
  readonly url: string;
  /** Undefined: the management API is not used. */
  readonly managementUrl?: string;
  readonly prefix: string;
  readonly heartbeatSeconds: number;
  readonly confirmTimeoutMs: number;
  readonly maxUnconfirmed: number;
}

/** One connection with one channel; whichever of the two ends, both have ended. */
interface Session {
  readonly connection: ChannelModel;
  readonly channel: ConfirmChannel;
  /** Resolves with the reason. */
  readonly ended: Promise<Error>;
}

export interface LineOptions {
  readonly config: BrokerConfig;
  readonly log: Log;
  /** What the connection is for; people see it in the management UI. */
  readonly purpose: string;
  /** Makes every new channel ready for use; when it fails, the connection is given up and made again. */
  readonly attach: (channel: ConfirmChannel, connection: ChannelModel) => Promise<void> | void;
}

/** A connection that is made again for ever, until it is closed. */
export interface Line {
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const LONGEST_BACKOFF_MS = 10_000;
/** A connection that held for so long was a good one: the next failure is a new one. */
const GOOD_AFTER_MS = 5_000;
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * Keeps one connection with one channel alive.
 *
 * Recovery of our own, because that of the driver ends at the connection: a channel that dies alone, its prefetch and
 * its consumers would still be ours to rebuild. Here either of them going means that both are made again.
 *
 * Resolves after the first attempt. A broker that cannot be reached is no failure, it may come; one that answers and
 * refuses the user or the virtual host rejects.
 */
export async function keepLine(options: LineOptions): Promise<Line> {
  const { config, log, purpose } = options;
  const stopping = new AbortController();
  let session: Session | undefined;
  let closing: Promise<void> | undefined;

  async function live(onAttached: () => void): Promise<never> {
    const opened = await openSession(config, purpose);
    session = opened;
    try {
      if (stopping.signal.aborted) throw new Error('closed while connecting');
      await options.attach(opened.channel, opened.connection);
      log.info('broker.connected', { connection: purpose });
      onAttached();
      throw await opened.ended;
    } finally {
      session = undefined;
      await closeSession(opened);
    }
  }

  async function run(onFirst: (error?: unknown) => void): Promise<void> {
    let failures = 0;
    let isDown = false;
    while (!stopping.signal.aborted) {
      const startedAt = performance.now();
      try {
        await live(() => {
          isDown = false;
          onFirst();
        });
      } catch (error) {
        if (stopping.signal.aborted) break;
        onFirst(error);
        if (isDown) log.debug('broker.still_unreachable', { connection: purpose, reason: reasonOf(error) });
        else log.fault('broker.lost', error, { connection: purpose });
        isDown = true;
        failures = performance.now() - startedAt > GOOD_AFTER_MS ? 1 : failures + 1;
        await pause(backoffMs(failures, LONGEST_BACKOFF_MS), stopping.signal);
      }
    }
    onFirst();
  }

  let running = Promise.resolve();
  const close = (): Promise<void> => {
    closing ??= (async () => {
      stopping.abort();
      if (session !== undefined) await closeSession(session);
      await running;
    })();
    return closing;
  };

  parseBrokerUrl(config.url);
  const firstError = await new Promise<unknown>((resolve) => {
    running = run(resolve);
  });
  if (firstError instanceof BrokerRefusal) {
    await close();
    throw firstError;
  }
  return { close };
}

/** The broker answered, and does not want this user or has no such virtual host: trying again will not help. */
export class BrokerRefusal extends Outage {}

/** Opens a connection whose errors are heard; the caller closes it. */
export async function openConnection(config: BrokerConfig, purpose: string): Promise<ChannelModel> {
  const address = parseBrokerUrl(config.url);
  const connection = await connect(
    { ...address, heartbeat: config.heartbeatSeconds },
    {
      noDelay: true,
      keepAlive: true,
      timeout: CONNECT_TIMEOUT_MS,
      clientProperties: { connection_name: `${config.prefix} ${purpose}` },
    },
  ).catch((error: Error) => {
    throw explain(error, address.vhost);
  });
  // Without a listener an error would end the process; whoever needs the reason listens as well.
  connection.on('error', () => undefined);
  return connection;
}

/** Runs `use` with a connection of its own. */
export async function withConnection<T>(
  config: BrokerConfig,
  purpose: string,
  use: (connection: ChannelModel) => Promise<T>,
): Promise<T> {
  const connection = await openConnection(config, purpose);
  try {
    return await use(connection);
  } finally {
    await waitBriefly([connection.close()]);
  }
}

async function openSession(config: BrokerConfig, purpose: string): Promise<Session> {
  const connection = await openConnection(config, purpose);
  try {
    const channel = await connection.createConfirmChannel();
    const ended = new Promise<Error>((resolve) => {
      let reason: Error | undefined;
      const learn = (error?: Error): void => {
        reason ??= error;
      };
      const end = (error?: Error): void => {
        learn(error);
        // A closing connection closes its channels first and says why afterwards.
        setImmediate(() => resolve(reason ?? new Error('the channel was closed')));
      };
      channel.on('error', learn).on('close', end);
      connection.on('error', learn).on('close', end);
    });
    return { connection, channel, ended };
  } catch (error) {
    await connection.close().catch(() => undefined);
    throw error;
  }
}

/** The channel first: acks still in its buffer would be overtaken by the closing of the connection, and lost. */
async function closeSession({ connection, channel, ended }: Session): Promise<void> {
  await waitBriefly([channel.close(), ended]);
  const gone = new Promise((resolve) => connection.once('close', resolve));
  await waitBriefly([connection.close(), gone]);
}

/**
 * Waits for the first of them, rejected or not, for 5 s at most: what is asked of a connection that dies meanwhile is
 * never answered.
 */
export async function waitBriefly(promises: Promise<unknown>[]): Promise<void> {
  const timeout = new AbortController();
  await Promise.race([...promises, pause(CLOSE_TIMEOUT_MS, timeout.signal)]).catch(() => undefined);
  timeout.abort();
}

/** The driver tells a refusal only in words, and of a virtual host that is not there not even that. */
function explain(error: Error, vhost: string): Error {
  if (error.message.includes('ACCESS_REFUSED')) return new BrokerRefusal(error.message);
  if (!/ConnectionOpenOk.*ConnectionClose/.test(error.message)) return error;
  return new BrokerRefusal(`the virtual host ${JSON.stringify(vhost)} is not there, or not for this user`);
}
