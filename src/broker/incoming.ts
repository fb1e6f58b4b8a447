import type { ConsumeMessage, GetMessage } from 'amqplib';

/** AMQP properties as they came; undefined where the sender gave none. */
export interface IncomingProperties {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly messageId?: string;
  readonly correlationId?: string;
  readonly replyTo?: string;
  readonly contentType?: string;
  readonly contentEncoding?: string;
  readonly type?: string;
  readonly appId?: string;
  readonly userId?: string;
  /** Unix seconds. */
  readonly timestamp?: number;
  readonly priority?: number;
}

/** A message taken from a queue. */
export interface Incoming {
  readonly body: Buffer;
  readonly routingKey: string;
  readonly exchange: string;
  readonly properties: IncomingProperties;
  readonly redelivered: boolean;
  /** How often it came back before, as the queue counts; undefined where it does not. */
  readonly deliveryCount?: number;
}

const TEXTS = [
  'messageId',
  'correlationId',
  'replyTo',
  'contentType',
  'contentEncoding',
  'type',
  'appId',
  'userId',
] as const;
const NUMBERS = ['timestamp', 'priority'] as const;

export function readMessage({ content, fields, properties }: ConsumeMessage | GetMessage): Incoming {
  const headers: Record<string, unknown> = properties.headers ?? {};
  const count = headers['x-delivery-count'];
  const given: Record<string, unknown> = {};
  for (const name of TEXTS) if (typeof properties[name] === 'string') given[name] = properties[name];
  for (const name of NUMBERS) if (typeof properties[name] === 'number') given[name] = properties[name];
  return {
    body: content,
    routingKey: fields.routingKey,
    exchange: fields.exchange,
    properties: { ...given, headers },
    redelivered: fields.redelivered,
    ...(typeof count === 'number' ? { deliveryCount: count } : {}),
  };
}
