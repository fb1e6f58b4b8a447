import { randomUUID } from 'node:crypto';
import type { ConfirmChannel, Message } from 'amqplib';
import { type Outgoing, PublishError } from './outgoing.ts';

/** What became of messages, counted. */
export interface PublisherCounters {
  published: number;
  returned: number;
  /** Replies whose queue is gone: whoever asked has stopped waiting. */
  unwanted: number;
  nacked: number;
  timedOut: number;
  /** Sent, and the channel ended before the broker said anything. */
  lost: number;
}

/** Messages between the call and the broker's word, of which only so many are sent and not confirmed. */
export interface Outbox {
  /** As `Publisher.publish`, but waits for a channel if there is none. */
  publish(message: Outgoing): Promise<void>;
  /** Sends through this channel until it ends. */
  attach(channel: ConfirmChannel): void;
  /** Resolves once nothing is on its way. */
  drain(): Promise<void>;
  /** Call it now and then: gives up on what has waited too long. */
  expire(): void;
  readonly counters: Readonly<PublisherCounters>;
}

interface Entry {
  readonly message: Outgoing;
  readonly messageId: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly expiresAtMs: number;
  isReturned: boolean;
}

const COMPACT_AFTER = 1024;
/** The driver's words for a nack; every other error of a confirm means that the channel has ended. */
const NACKED = 'message nacked';

export function createOutbox(limits: {
  readonly maxUnconfirmed: number;
  readonly confirmTimeoutMs: number;
}): Outbox {
  const idPrefix = `${randomUUID()}-`;
  const counters: PublisherCounters = {
    published: 0,
    returned: 0,
    unwanted: 0,
    nacked: 0,
    timedOut: 0,
    lost: 0,
  };
  const inFlight = new Set<Entry>();
  let backlog: Entry[] = [];
  let backlogHead = 0;
  let channel: ConfirmChannel | undefined;
  let isFull = false;
  let lastId = 0;
  let whenEmpty: (() => void) | undefined;

  function attach(fresh: ConfirmChannel): void {
    fresh.on('return', markReturned);
    fresh.on('drain', () => {
      isFull = false;
      pump();
    });
    fresh.on('close', () => lose(fresh));
    isFull = false;
    channel = fresh;
    pump();
  }

  function publish(message: Outgoing): Promise<void> {
    return new Promise((resolve, reject) => {
      const messageId = message.messageId ?? `${idPrefix}${++lastId}`;
      const expiresAtMs = performance.now() + limits.confirmTimeoutMs;
      backlog.push({ message, messageId, resolve, reject, expiresAtMs, isReturned: false });
      pump();
    });
  }

  function pump(): void {
    while (channel !== undefined && !isFull && inFlight.size < limits.maxUnconfirmed) {
      const entry = backlog[backlogHead];
      if (entry === undefined) break;
      backlogHead += 1;
      send(channel, entry);
    }
    if (backlogHead === backlog.length || backlogHead > COMPACT_AFTER) {
      backlog = backlog.slice(backlogHead);
      backlogHead = 0;
    }
    if (inFlight.size === 0 && backlog.length === 0) whenEmpty?.();
  }

  /** Properties are always fresh: headers passed on from another message have lost messages on re-entry. */
  function send(on: ConfirmChannel, entry: Entry): void {
    const { message } = entry;
    const options = {
      ...message.properties,
      persistent: true,
      mandatory: message.mandatory ?? true,
      messageId: entry.messageId,
      contentType: message.contentType ?? 'application/json',
      headers: message.headers,
      ...(message.correlationId === undefined ? {} : { correlationId: message.correlationId }),
    };
    const onConfirm = (error: Error | null): void => settle(on, entry, error);
    inFlight.add(entry);
    try {
      isFull = !on.publish(message.exchange, message.routingKey, message.body, options, onConfirm);
    } catch (error) {
      // It could not be encoded, so nothing of it was sent and the channel is as good as before.
      inFlight.delete(entry);
      entry.reject(error);
    }
  }

  function settle(on: ConfirmChannel, entry: Entry, error: Error | null): void {
    if (!inFlight.delete(entry)) return;
    // The broker confirms what it has returned, too.
    if (entry.isReturned) {
      if (entry.message.optional === true) counters.unwanted += 1;
      else counters.returned += 1;
      entry.reject(new PublishError('returned', `no queue takes ${describe(entry.message)}`));
    } else if (error === null) {
      counters.published += 1;
      entry.resolve();
    } else if (error.message === NACKED) {
      counters.nacked += 1;
      entry.reject(new PublishError('nacked', `the broker refused ${describe(entry.message)}`));
    } else {
      counters.lost += 1;
      entry.reject(new PublishError('lost', 'the channel ended before the broker confirmed'));
      lose(on);
    }
    pump();
  }

  /** What was sent hears of it from the driver; what still waited was never sent. */
  function lose(gone: ConfirmChannel): void {
    if (channel !== gone) return;
    channel = undefined;
    const waiting = backlog.slice(backlogHead);
    backlog = [];
    backlogHead = 0;
    for (const entry of waiting) {
      entry.reject(new PublishError('not_connected', 'the broker went away before the message was sent'));
    }
    pump();
  }

  /**
   * A return comes before its confirm, in the order of publishing. Several messages may carry the same id, as it can
   * be a producer's: the oldest that fits is the one.
   */
  function markReturned({ fields, properties }: Message): void {
    for (const entry of inFlight) {
      if (entry.isReturned || entry.messageId !== properties.messageId) continue;
      if (entry.message.exchange !== fields.exchange || entry.message.routingKey !== fields.routingKey)
        continue;
      entry.isReturned = true;
      return;
    }
  }

  function expire(): void {
    const nowMs = performance.now();
    // Sent in the order of the calls, so the oldest come first.
    for (const entry of inFlight) {
      if (entry.expiresAtMs > nowMs) break;
      inFlight.delete(entry);
      timeOut(entry);
    }
    for (
      let entry = backlog[backlogHead];
      entry !== undefined && entry.expiresAtMs <= nowMs;
      entry = backlog[backlogHead]
    ) {
      backlogHead += 1;
      timeOut(entry);
    }
    pump();
  }

  function timeOut(entry: Entry): void {
    counters.timedOut += 1;
    entry.reject(new PublishError('timed_out', `no confirm within ${limits.confirmTimeoutMs} ms`));
  }

  return {
    publish,
    attach,
    drain() {
      return new Promise((resolve) => {
        whenEmpty = resolve;
        pump();
      });
    },
    expire,
    counters,
  };
}

function describe(message: Outgoing): string {
  return `a message for ${message.exchange || 'the default exchange'} with the key ${message.routingKey}`;
}
