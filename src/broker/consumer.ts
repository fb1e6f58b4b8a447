import { setMaxListeners } from 'node:events';
import type { ConfirmChannel, ConsumeMessage } from 'amqplib';
import { backoffMs, pause } from '../runtime/backoff.ts';
import { killPoint } from '../runtime/kill-point.ts';
import type { Log } from '../runtime/log.ts';
import { type AckWindow, createAckWindow } from './ack-window.ts';
import { type BrokerConfig, keepLine, waitBriefly } from './connection.ts';
import { type Incoming, readMessage } from './incoming.ts';
import { SetAsideFullError } from './outgoing.ts';
import { createParking, type Parking, type Places } from './parking.ts';

export interface ConsumerOptions {
  readonly config: BrokerConfig;
  readonly log: Log;
  readonly queue: string;
  /** How many messages are in hand at once, at most; those that wait for room do not count. */
  readonly prefetch: number;
  /**
   * Resolves when the message is done with, whatever came of it; rejects for a fault of ours: it comes again. With a
   * SetAsideFullError only this message is waited with, while others are taken: as long as no more wait than ten times
   * the prefetch.
   */
  readonly handle: (message: Incoming) => Promise<void>;
  /**
   * Asked after a fault, before anything is given back and taken again. What is given back counts towards the delivery
   * limit of the queue, so an outage should be waited out here. Undefined: only the backoff is waited for.
   */
  readonly isHealthy?: () => Promise<boolean>;
}

export interface Consumer {
  /** Whether messages are being taken. */
  isAttached(): boolean;
  /** Whether so many messages wait for room where they are set aside that no others are taken. */
  isBlocked(): boolean;
  /** How many messages are being handled. */
  inHand(): number;
  /** Stops taking, waits for what is in hand and acknowledges it, then disconnects. */
  stop(): Promise<void>;
  readonly counters: Readonly<ConsumerCounters>;
}

export interface ConsumerCounters {
  taken: number;
  acknowledged: number;
  givenBack: number;
}

/** What belongs to one channel, delivery tags above all: nothing of it may reach the next. */
interface Session {
  readonly channel: ConfirmChannel;
  readonly window: AckWindow;
  /** Tags of messages that met a fault; they are kept until we are well again. */
  readonly failed: number[];
  inHand: number;
  readonly parking: Parking;
  consumerTag: string | undefined;
  /** Under way: another consumer takes the place of the present one. */
  renewal: Promise<void> | undefined;
  isHolding: boolean;
  isOver: boolean;
  isFlushing: boolean;
  readonly whenEmpty: (() => void)[];
}

const LONGEST_BACKOFF_MS = 30_000;

/**
 * Takes messages from a queue, on a connection of its own, and acknowledges each when its handler is done.
 *
 * Resolves after the first attempt to connect, as `connectPublisher` does; a queue that is missing is waited for.
 */
export async function startConsumer(options: ConsumerOptions): Promise<Consumer> {
  const { config, log, queue } = options;
  const stopping = new AbortController();
  // Every message that is parked listens; Node takes more than ten for a leak.
  setMaxListeners(0, stopping.signal);
  const counters: ConsumerCounters = { taken: 0, acknowledged: 0, givenBack: 0 };
  const sessions = new Set<Session>();
  let current: Session | undefined;
  /** Faults in a row without a success between; 0 when all is well. */
  let faults = 0;
  let stopped: Promise<void> | undefined;

  async function attach(channel: ConfirmChannel): Promise<void> {
    const session: Session = {
      channel,
      window: createAckWindow(),
      failed: [],
      inHand: 0,
      parking: createParking(options.prefetch),
      consumerTag: undefined,
      renewal: undefined,
      isHolding: false,
      isOver: false,
      isFlushing: false,
      whenEmpty: [],
    };
    channel.on('close', () => {
      session.isOver = true;
      if (session.inHand === 0) sessions.delete(session);
      if (current === session) current = undefined;
    });
    sessions.add(session);
    current = session;
    await channel.prefetch(options.prefetch);
    // A connection that is made anew during an outage of ours does not end the outage.
    if (faults > 0) void hold(session);
    else await consume(session);
  }

  async function consume(session: Session): Promise<void> {
    if (stopping.signal.aborted || session.isOver) return;
    const places = session.parking.begin();
    const onMessage = (message: ConsumeMessage | null): void => {
      if (message === null) void consumeAgain(session);
      else void take(session, message, places);
    };
    session.consumerTag = (await session.channel.consume(queue, onMessage)).consumerTag;
  }

  /** The broker cancelled us: the queue was deleted or moved. If it is gone, the channel ends and is made again. */
  async function consumeAgain(session: Session): Promise<void> {
    session.consumerTag = undefined;
    log.warn('consumer.cancelled', { queue });
    if (!session.isHolding) await consume(session).catch(() => undefined);
  }

  async function take(session: Session, message: ConsumeMessage, places: Places): Promise<void> {
    const tag = message.fields.deliveryTag;
    // Left to the broker: it comes again when the channel ends.
    if (stopping.signal.aborted || session.isOver) return;
    if (session.isHolding) {
      session.failed.push(tag);
      return;
    }
    const incoming = readMessage(message);
    counters.taken += 1;
    session.inHand += 1;
    try {
      await options.handle(incoming);
      session.window.settle(tag);
      counters.acknowledged += 1;
      flushSoon(session);
      if (faults > 0 && !session.isHolding) recovered();
    } catch (error) {
      if (error instanceof SetAsideFullError) {
        log.fault('consumer.parked', error, { queue, messageId: message.properties.messageId });
        void park(session, { tag, timesBack: incoming.deliveryCount ?? 0, places });
        return;
      }
      session.failed.push(tag);
      if (!session.isHolding && !session.isOver && !stopping.signal.aborted) {
        if (faults === 0)
          log.fault('consumer.fault', error, { queue, messageId: message.properties.messageId });
        void hold(session);
      }
    } finally {
      session.inHand -= 1;
      if (session.inHand === 0) {
        for (const resolve of session.whenEmpty.splice(0)) resolve();
        if (session.isOver) sessions.delete(session);
      }
    }
  }

  function recovered(): void {
    log.info('consumer.recovered', { queue, faults });
    faults = 0;
  }

  /** Takes nothing until we are well again, then gives back what failed; never a loop that spins. */
  async function hold(session: Session): Promise<void> {
    session.isHolding = true;
    faults += 1;
    try {
      await session.renewal;
      await cancel(session);
      await empty(session);
      do {
        await pause(backoffMs(faults, LONGEST_BACKOFF_MS), stopping.signal);
        if (stopping.signal.aborted || session.isOver) return;
      } while (!(await isHealthy()));
      // As they came, and not as they failed: the broker keeps that order.
      const failed = session.failed.splice(0).sort((a, b) => a - b);
      giveBack(session, failed);
      session.isHolding = false;
      await consume(session);
    } catch (error) {
      // Only a channel that has ended rejects; the next one starts from here.
      log.debug('consumer.hold_ended', { queue, reason: String(error) });
    }
  }

  async function isHealthy(): Promise<boolean> {
    const answer = (await options.isHealthy?.().catch(() => false)) ?? true;
    if (!answer) faults += 1;
    return answer;
  }

  /** Keeps one message back, and gives it back later; the others go on. */
  async function park(
    session: Session,
    { tag, timesBack, places }: { tag: number; timesBack: number; places: Places },
  ): Promise<void> {
    const isOver = session.parking.wait(places, timesBack, stopping.signal);
    renew(session);
    await isOver;
    if (!stopping.signal.aborted) giveBack(session, [tag]);
  }

  /** Where what is parked leaves few places, goes on with a new consumer: its places are free. */
  function renew(session: Session): void {
    const { channel, consumerTag: before, parking, renewal, isHolding, isOver } = session;
    if (before === undefined || renewal !== undefined || isHolding || isOver) return;
    if (stopping.signal.aborted || !parking.isCrowded()) return;
    session.renewal = consume(session)
      .then(() => channel.cancel(before))
      .then(
        () => {
          session.renewal = undefined;
          // Meanwhile the new one's may have been taken as well.
          renew(session);
        },
        // Only a channel that has ended rejects.
        () => undefined,
      );
  }

  function giveBack(session: Session, tags: readonly number[]): void {
    if (session.isOver) return;
    for (const tag of tags) {
      session.window.skip(tag);
      session.channel.nack(asMessage(tag), false, true);
      counters.givenBack += 1;
    }
  }

  async function cancel(session: Session): Promise<void> {
    const tag = session.consumerTag;
    session.consumerTag = undefined;
    if (tag !== undefined && !session.isOver) await session.channel.cancel(tag);
  }

  function empty(session: Session): Promise<void> {
    return new Promise((resolve) => {
      if (session.inHand === 0) resolve();
      else session.whenEmpty.push(resolve);
    });
  }

  /** Once per turn of the event loop: what was done together is acknowledged together. */
  function flushSoon(session: Session): void {
    if (session.isFlushing) return;
    session.isFlushing = true;
    setImmediate(() => {
      session.isFlushing = false;
      flush(session);
    });
  }

  function flush(session: Session): void {
    // Tags of a channel that has ended mean nothing, or other messages, to the next.
    if (session.isOver) return;
    const { upTo, singly } = session.window.take();
    if (upTo === undefined && singly.length === 0) return;
    killPoint('ack.due');
    if (upTo !== undefined) session.channel.ack(asMessage(upTo), true);
    for (const tag of singly) session.channel.ack(asMessage(tag), false);
    killPoint('ack.sent');
  }

  const line = await keepLine({ config, log, purpose: `consumer of ${queue}`, attach });

  return {
    isAttached: () => current?.consumerTag !== undefined,
    isBlocked: () => current?.parking.isBlocked() ?? false,
    inHand: () => [...sessions].reduce((sum, session) => sum + session.inHand, 0),
    stop() {
      stopped ??= (async () => {
        stopping.abort();
        if (current !== undefined) await waitBriefly([cancel(current)]);
        await Promise.all([...sessions].map(empty));
        for (const session of sessions) flush(session);
        await line.close();
      })();
      return stopped;
    },
    counters,
  };
}

/** The driver wants a message where the tag is all it uses. */
function asMessage(deliveryTag: number): ConsumeMessage {
  return { fields: { deliveryTag } } as ConsumeMessage;
}
