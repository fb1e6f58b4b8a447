import type { Incoming } from '../broker/incoming.ts';
import type { Publisher } from '../broker/publisher.ts';
import { setAside } from '../broker/set-aside.ts';
import { isMembers, parseJsonBody } from '../domain/json.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Log } from '../runtime/log.ts';
import type { Span, Traces } from '../runtime/traces.ts';
import { createTurns } from './turns.ts';

/** A command's own work: takes the body without `v`, gives the members of the answer. */
export type CommandHandler = (
  body: Record<string, unknown>,
  context: { readonly outerKey: string | undefined; readonly actor: string },
) => Promise<Record<string, unknown>>;

export interface CommandsOptions {
  readonly publisher: Publisher;
  readonly log: Log;
  /** The exchange of commands that could not be accepted. */
  readonly rejected: string;
  /** What the names of all queues of ours begin with, before a dot. */
  readonly prefix: string;
  readonly maxBodyBytes: number;
  /** By routing key. */
  readonly handlers: Readonly<Record<string, CommandHandler>>;
  /** What a command is about: those about one thing are carried out in the order they came; undefined: in any. */
  readonly subjectOf: (routingKey: string, body: Readonly<Record<string, unknown>>) => string | undefined;
  /** Undefined: none are made. */
  readonly traces?: Traces | undefined;
  /** Told of every command that was answered. */
  readonly onAnswered?: (routingKey: string, code: string) => void;
}

const VERSION = 1;
/** Names that RabbitMQ gives to the direct way back to whoever asked. */
const DIRECT_REPLY_TO = 'amq.rabbitmq.reply-to.';

/**
 * Takes commands of other services.
 *
 * What is accepted is answered after its commit. What is refused is answered, and put aside with the reason; only then
 * is it acknowledged. A fault of ours rejects: the command comes again.
 */
export function createCommandReader(options: CommandsOptions): (message: Incoming) => Promise<void> {
  const { traces } = options;
  const takeTurn = createTurns();
  const take = (message: Incoming, span: Span | undefined): Promise<void> => {
    const command = readCommand(options, message);
    return takeTurn(command.subject, () => answer(options, { ...command, message, span }));
  };
  if (traces === undefined) return (message) => take(message, undefined);
  return async (message) => {
    const span = traces.begin(
      `command ${nameOf(options, message)}`,
      message.properties.headers['traceparent'],
      {
        kind: 'consumer',
        attributes: { 'messaging.system': 'rabbitmq' },
      },
    );
    try {
      await traces.within(span, () => take(message, span));
    } catch (error) {
      span.fail('fault');
      throw error;
    } finally {
      span.end();
    }
  };
}

/** What a message asks for. */
interface Command {
  readonly subject: string | undefined;
  readonly carryOut: () => Promise<Record<string, unknown>>;
}

/** What cannot be read is about nothing, and refused when it is carried out. */
function readCommand(options: CommandsOptions, message: Incoming): Command {
  try {
    return read(options, message);
  } catch (error) {
    return { subject: undefined, carryOut: () => Promise.reject(error) };
  }
}

async function answer(
  options: CommandsOptions,
  { message, span, carryOut }: Command & { readonly message: Incoming; readonly span: Span | undefined },
): Promise<void> {
  try {
    const result = await carryOut();
    await reply(options, message, { ok: true, ...result });
    options.onAnswered?.(nameOf(options, message), result['duplicate'] === true ? 'duplicate' : 'accepted');
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    span?.fail(error.code);
    await setAside(options.publisher, options.rejected, {
      message,
      reason: `${error.code}: ${error.message}`,
    });
    await reply(options, message, {
      ok: false,
      error: { code: error.code, detail: error.message, errors: error.faults },
    });
    options.log.warn('command_rejected', {
      routing_key: message.routingKey,
      code: error.code,
      message_id: message.properties.messageId,
    });
    options.onAnswered?.(nameOf(options, message), error.code);
  }
}

/** A name of bounded variety: what others mistype is one name. */
function nameOf({ handlers }: CommandsOptions, { routingKey }: Incoming): string {
  return Object.hasOwn(handlers, routingKey) ? routingKey : 'unknown';
}

function read(options: CommandsOptions, message: Incoming): Command {
  const { routingKey, properties } = message;
  const handler = Object.hasOwn(options.handlers, routingKey) ? options.handlers[routingKey] : undefined;
  if (handler === undefined) {
    throw new Refusal(
      'unsupported_command',
      `the routing key names no command; known are ${Object.keys(options.handlers).join(', ')}`,
    );
  }
  const { v, ...body } = readObject(message, options.maxBodyBytes);
  if (v !== VERSION) {
    const text = `v must be ${VERSION}`;
    throw new Refusal('unsupported_version', text, [{ path: '/v', message: text }]);
  }
  const context = {
    outerKey: properties.messageId,
    actor: properties.userId === undefined ? 'amqp' : `amqp:${properties.userId}`,
  };
  return { subject: options.subjectOf(routingKey, body), carryOut: () => handler(body, context) };
}

function readObject({ body, properties }: Incoming, maxBytes: number): Record<string, unknown> {
  if (body.length > maxBytes) {
    throw new Refusal('payload_too_large', `the body has ${body.length} bytes, ${maxBytes} are allowed`);
  }
  if (properties.contentEncoding !== undefined && !/^(identity|utf-?8)$/i.test(properties.contentEncoding)) {
    throw new Refusal('invalid_request', 'the content_encoding is not supported: send plain UTF-8');
  }
  const value = parseJsonBody(body);
  if (isMembers(value)) return { ...value };
  throw new Refusal('invalid_request', 'the body must be a JSON object');
}

/**
 * An answer that cannot be given is not worth the command: whoever waits for it asks again, with the same key. Nor is one
 * given into a queue of ours, where those who send commands may write nothing.
 */
async function reply(
  options: CommandsOptions,
  message: Incoming,
  answer: Record<string, unknown>,
): Promise<void> {
  const { replyTo, correlationId } = message.properties;
  if (replyTo === undefined || replyTo === '') return;
  if (replyTo.startsWith(`${options.prefix}.`)) {
    options.log.warn('reply_not_delivered', { error: 'reply_to names a queue of duepost itself' });
    return;
  }
  try {
    await options.publisher.publish({
      exchange: '',
      optional: true,
      routingKey: replyTo,
      body: Buffer.from(JSON.stringify(answer)),
      ...(correlationId === undefined ? {} : { correlationId }),
      // It is delivered, and returned all the same, because no queue has its name.
      mandatory: !replyTo.startsWith(DIRECT_REPLY_TO),
    });
  } catch (error) {
    options.log.warn('reply_not_delivered', {
      error: error instanceof Error ? error.message : String(error),
    });
  }
}
