import { Outage } from '../runtime/outage.ts';

/** A message to be sent. */
export interface Outgoing {
  readonly exchange: string;
  readonly routingKey: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly correlationId?: string;
  /** `application/json` if undefined. */
  readonly contentType?: string;
  /** One of its own if undefined. */
  readonly messageId?: string;
  /** Whether it is an error that no queue takes it; true if undefined. */
  readonly mandatory?: boolean;
  /** Nobody has to want it: that no queue takes it is told to the caller and counted apart. */
  readonly optional?: boolean;
  /** Further AMQP properties. */
  readonly properties?: OutgoingProperties;
}

export interface OutgoingProperties {
  readonly contentEncoding?: string;
  readonly replyTo?: string;
  readonly type?: string;
  readonly appId?: string;
  /** Unix seconds. */
  readonly timestamp?: number;
  readonly priority?: number;
}

export type PublishFailure = 'not_connected' | 'returned' | 'nacked' | 'timed_out' | 'lost';

/** A message could not be put where people would see it, because there is no room: it alone has to wait. */
export class SetAsideFullError extends Error {
  constructor(exchange: string, cause: PublishError) {
    super(`${exchange} takes no more: look through its queue, and empty it`, { cause });
    this.name = 'SetAsideFullError';
  }
}

/** The broker did not take a message; after `timed_out` and `lost` nobody knows. */
export class PublishError extends Outage {
  readonly failure: PublishFailure;

  constructor(failure: PublishFailure, message: string) {
    super(message);
    this.name = 'PublishError';
    this.failure = failure;
  }
}
