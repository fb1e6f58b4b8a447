import { namesOf, topologyOf } from '../../src/broker/topology.ts';
import { SealedStatement } from '../../src/domain/audit/bundle.ts';
import { REFUSAL_CODES } from '../../src/domain/refusal.ts';
import { DeadReason } from '../../src/domain/requests/operations.ts';
import {
  CancelBody,
  ContractRef,
  EventBody,
  ReminderBody,
  RescheduleBody,
} from '../../src/domain/requests/schemas.ts';
import { TIER_SECONDS } from '../../src/domain/wakeup.ts';
import { Event, Reminder, RescheduledReminder, SCHEMAS } from '../../src/http/answers.ts';
import { version } from '../../src/runtime/build-info.ts';

type Schema = Readonly<Record<string, unknown>>;
type Members = Readonly<Record<string, unknown>>;

const PREFIX = 'duepost';
const names = namesOf(PREFIX);
const BINDING = { bindingVersion: '0.3.0' };

/** The commands, by routing key: what they do, their body, and what an accepted one is answered with. */
const COMMANDS = [
  ['reminder.schedule', 'Schedule a reminder', ReminderBody, Reminder],
  ['reminder.reschedule', 'Move a reminder that has not ended', RescheduleBody, RescheduledReminder],
  ['reminder.cancel', 'Cancel a reminder that has not ended', CancelBody, Reminder],
  ['event.publish', 'Publish an event to every endpoint that wants its type', EventBody, Event],
] as const;

const deliveryId = id('dlv', 'The delivery; `GET /v1/deliveries/{id}` tells the rest.');
const endpointId = id('ep', 'The endpoint; `GET /v1/endpoints/{endpoint}` tells the rest.');
const contractRef = { anyOf: [plain(ContractRef), { type: 'null' }] };

/** Notifications, by routing key: what happened, and what they name. */
const NOTIFICATIONS: readonly (readonly [string, string, Members])[] = [
  [
    'delivery.delivered',
    'A delivery was answered with success',
    { delivery_id: deliveryId, contract_ref: contractRef },
  ],
  [
    'delivery.dead_lettered',
    'A delivery ended without success',
    { delivery_id: deliveryId, contract_ref: contractRef },
  ],
  [
    'delivery.at_risk',
    'A delivery may miss its deadline',
    { delivery_id: deliveryId, contract_ref: contractRef },
  ],
  ['endpoint.disabled', 'An endpoint takes nothing any more', { endpoint_id: endpointId }],
  ['endpoint.paused', 'An endpoint was paused: its deliveries are held', { endpoint_id: endpointId }],
  ['endpoint.resumed', 'An endpoint was resumed', { endpoint_id: endpointId }],
  [
    'audit.sealed',
    'Evidence was sealed: keep this where nobody who runs the database can write',
    {
      seal: plain(SealedStatement),
      sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
      signature: { type: 'string', pattern: '^[0-9a-f]{128}$', description: 'Ed25519, of the statement.' },
    },
  ],
];

/** The AsyncAPI 3.0 document of everything that is said over the broker, from the schemas that validate it. */
export function asyncApiDocument(): Schema {
  const commands = COMMANDS.map(([key, summary, body, answer]) => ({
    key,
    name: nameOf(key),
    summary,
    body: withMembers(body, { v: { const: 1 } }),
    answer: withMembers(answer, { ok: { const: true } }),
  }));
  const notifications = NOTIFICATIONS.map(([key, summary, members]) => ({
    key,
    name: nameOf(key),
    summary,
    members,
  }));
  return {
    asyncapi: '3.0.0',
    info: {
      title: PREFIX,
      version,
      description:
        'Commands that other services send, and what they can listen to. Names are those of the prefix `duepost`. How to send a command and wait for its answer: docs/publishing.md.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    servers: {
      broker: {
        host: '127.0.0.1:5672',
        protocol: 'amqp',
        protocolVersion: '0-9-1',
        security: [{ $ref: '#/components/securitySchemes/brokerUser' }],
      },
    },
    channels: {
      ...Object.fromEntries(
        commands.map(({ key, name }) => [name, byRoutingKey(names.commands, key, [name])]),
      ),
      answers: {
        address: null,
        description: "The sender's `reply_to`.",
        messages: messages([...commands.map(({ name }) => `${name}Accepted`), 'refused']),
      },
      rejectedCommands: inQueue(names.commandsRejected, ['rejectedCommand']),
      ...Object.fromEntries(
        notifications.map(({ key, name }) => [name, byRoutingKey(names.notifications, key, [name])]),
      ),
      deadLetterNotices: inQueue(names.deadLetters, ['deadLetterNotice']),
      wakeUps: {
        ...byRoutingKey(names.wake, '{tier}', ['wakeUp']),
        parameters: {
          tier: {
            description: '`now`, or the longest delay that does not pass the time that is left.',
            enum: ['now', ...TIER_SECONDS.map((seconds) => `t${String(seconds).padStart(4, '0')}`)],
          },
        },
        tags: [{ name: 'internal' }],
      },
    },
    operations: {
      ...Object.fromEntries(
        commands.map(({ name, summary }) => [
          name,
          {
            action: 'receive',
            summary,
            channel: { $ref: `#/channels/${name}` },
            bindings: { amqp: { deliveryMode: 2, mandatory: true, ack: true, ...BINDING } },
            reply: {
              address: { location: '$message.header#/reply_to' },
              channel: { $ref: '#/channels/answers' },
              messages: [`${name}Accepted`, 'refused'].map((m) => ({
                $ref: `#/channels/answers/messages/${m}`,
              })),
            },
          },
        ]),
      ),
      setAsideRejectedCommand: sends('rejectedCommands', 'Commands that could not be accepted'),
      ...Object.fromEntries(
        notifications.map(({ name, summary }) => [`tell${capital(name)}`, sends(name, summary)]),
      ),
      keepDeadLetterNotice: sends(
        'deadLetterNotices',
        'One notice for each delivery that ended without success',
      ),
      sendWakeUp: { ...sends('wakeUps', 'Between processes of duepost alone'), tags: [{ name: 'internal' }] },
      takeWakeUp: {
        action: 'receive',
        summary: 'Between processes of duepost alone; a hint, whoever sends it',
        channel: { $ref: '#/channels/wakeUps' },
        tags: [{ name: 'internal' }],
      },
    },
    components: {
      securitySchemes: {
        brokerUser: {
          type: 'userPassword',
          description: `A broker user; for commands it needs no right but to write to ${names.commands}.`,
        },
      },
      correlationIds: {
        asSent: { location: '$message.header#/correlation_id', description: 'As the command had it.' },
      },
      messages: {
        ...Object.fromEntries(
          commands.flatMap(({ key, name, body, answer }) => [
            [name, { name: key, headers: COMMAND_PROPERTIES, payload: body, correlationId: AS_SENT }],
            [`${name}Accepted`, { payload: answer, correlationId: AS_SENT, summary: 'Committed.' }],
          ]),
        ),
        refused: {
          payload: REFUSED,
          correlationId: AS_SENT,
          summary: 'Final: the same again is refused again.',
        },
        rejectedCommand: {
          summary: 'Routing key, body and properties as they came.',
          headers: object({ 'x-duepost-error': { type: 'string', description: '`code: text`' } }, []),
          payload: { description: 'As it came; not always JSON.' },
        },
        ...Object.fromEntries(
          notifications.map(({ key, name, members }) => [
            name,
            {
              name: key,
              headers: NOTICE_PROPERTIES,
              payload: object({ v: { const: 1 }, event: { const: key }, ...members }),
            },
          ]),
        ),
        deadLetterNotice: {
          headers: NOTICE_PROPERTIES,
          payload: object({
            v: { const: 1 },
            delivery_id: deliveryId,
            contract_ref: contractRef,
            dead_reason: plain(DeadReason),
          }),
        },
        wakeUp: {
          payload: object({
            v: { const: 1 },
            delivery_id: deliveryId,
            contract_ref: contractRef,
            attempt: { type: 'integer', minimum: 1, description: 'The attempt it asks for.' },
          }),
        },
      },
    },
  };
}

const AS_SENT = { $ref: '#/components/correlationIds/asSent' };

const COMMAND_PROPERTIES = object(
  {
    message_id: {
      type: 'string',
      description: 'AMQP property: the key, if the body has no `idempotency_key`.',
    },
    reply_to: {
      type: 'string',
      description: 'AMQP property: `amq.rabbitmq.reply-to`, or a queue, but none of duepost itself.',
    },
    correlation_id: { type: 'string', description: 'AMQP property: comes back with the answer.' },
  },
  [],
);

const NOTICE_PROPERTIES = object({
  message_id: { type: 'string', description: 'AMQP property: the same when a notice comes twice.' },
});

const REFUSED = object({
  ok: { const: false },
  error: object({
    code: { enum: REFUSAL_CODES },
    detail: { type: 'string' },
    errors: {
      type: 'array',
      items: object({
        path: { type: 'string', description: 'JSON pointer, RFC 6901.' },
        message: { type: 'string' },
      }),
    },
  }),
});

function byRoutingKey(exchangeName: string, address: string, named: readonly string[]): Schema {
  const exchange = topologyOf(PREFIX).exchanges.find(({ name }) => name === exchangeName);
  return {
    address,
    messages: messages(named),
    bindings: {
      amqp: {
        is: 'routingKey',
        exchange: { name: exchangeName, type: exchange?.type, durable: true, autoDelete: false, vhost: '/' },
        ...BINDING,
      },
    },
  };
}

function inQueue(name: string, named: readonly string[]): Schema {
  return {
    address: name,
    messages: messages(named),
    bindings: {
      amqp: {
        is: 'queue',
        queue: { name, durable: true, exclusive: false, autoDelete: false, vhost: '/' },
        ...BINDING,
      },
    },
  };
}

function sends(channel: string, summary: string): Schema {
  return {
    action: 'send',
    summary,
    channel: { $ref: `#/channels/${channel}` },
    bindings: { amqp: { deliveryMode: 2, ...BINDING } },
  };
}

function messages(named: readonly string[]): Schema {
  return Object.fromEntries(named.map((name) => [name, { $ref: `#/components/messages/${name}` }]));
}

function withMembers(schema: object, members: Members): Schema {
  const {
    $id: _,
    properties,
    required,
    ...rest
  } = plain(schema) as {
    $id?: string;
    properties: Members;
    required?: readonly string[];
  };
  return {
    ...rest,
    properties: { ...members, ...properties },
    required: [...Object.keys(members), ...(required ?? [])],
  };
}

function object(properties: Members, required = Object.keys(properties)): Schema {
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) };
}

function id(prefix: string, description: string): Schema {
  return { type: 'string', pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`, description };
}

/** As JSON has it, without what TypeBox keeps for itself. */
/** Without the names that only the HTTP document has: what they mean stands in their place. */
function plain(schema: object): Schema {
  return JSON.parse(JSON.stringify(schema), (_, value) => {
    const name = /^(\w+)#$/.exec(value?.$ref ?? '')?.[1];
    if (name === undefined) return value;
    const { $id: _id, ...meant } = plain(named(name)) as { $id?: string };
    return meant;
  }) as Schema;
}

function named(name: string): object {
  const schema = SCHEMAS.find((each) => (each as { $id?: string }).$id === name);
  if (schema === undefined) throw new Error(`there is no schema ${name}`);
  return schema;
}

function nameOf(routingKey: string): string {
  return routingKey.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase());
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
