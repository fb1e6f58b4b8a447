import { EventType } from '../domain/requests/schemas.ts';

const Text = { type: 'string' };
const Instant = { type: 'string', format: 'date-time' };

/** What an endpoint is called with, as OpenAPI 3.1 describes webhooks. */
export function describeWebhooks(): object {
  return {
    event: call('receiveEvent', 'An event, to every endpoint whose `event_types` match', {
      required: ['type', 'timestamp', 'data'],
      properties: HEAD,
    }),
    reminder: call('receiveReminder', 'A reminder of a contract renewal, to its endpoint', {
      required: ['type', 'timestamp', 'contract_ref', 'renewal_date', 'notice_period', 'deadline_at', 'data'],
      properties: {
        ...HEAD,
        contract_ref: Text,
        renewal_date: { type: 'string', format: 'date' },
        notice_period: { ...Text, examples: ['P30D'] },
        deadline_at: Instant,
      },
    }),
  };
}

const HEAD = {
  type: EventType,
  timestamp: Instant,
  data: { description: "The producer's payload: any JSON, numbers as they were written." },
};

function call(operationId: string, summary: string, body: object): object {
  return {
    post: {
      operationId,
      summary,
      description:
        'Sent at least once, with the same body and the same `Idempotency-Key` on every attempt: act once for each key. Redirects are not followed.',
      security: [],
      tags: ['deliveries'],
      parameters: HEADERS.map(([name, description]) => ({
        name,
        in: 'header',
        required: true,
        description,
        schema: Text,
      })),
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { type: 'object', ...body } } },
      },
      responses: {
        '2XX': {
          description: 'Delivered.',
          headers: {
            'webhook-receipt': {
              description: 'Optional: what the receiver calls its own record of it. Kept as evidence.',
              schema: Text,
            },
          },
        },
        '410': { description: 'Gone: the endpoint is disabled.' },
        '429': {
          description: 'Try again later, not before `Retry-After`.',
          headers: { 'Retry-After': { description: 'Seconds, or an HTTP date.', schema: Text } },
        },
        default: { description: 'By the policy in use: tried again, or given up.' },
      },
    },
  };
}

const HEADERS = [
  ['Idempotency-Key', "The delivery's key: the same on every attempt, replays included."],
  ['X-Delivery-Attempt', 'The number of the attempt, from 1.'],
  ['X-Signature-256', 'HMAC-SHA256 of the body by the newest secret, lower-case hex.'],
  ['webhook-id', "The delivery's id."],
  ['webhook-timestamp', 'When this attempt was made, in Unix seconds.'],
  [
    'webhook-signature',
    'Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; one for each secret in force, separated by spaces.',
  ],
] as const;
