import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { version } from '../runtime/build-info.ts';
import { describeWebhooks } from './webhooks.ts';

/** Of the document what is looked at here. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, BodySchema>>;
    responses?: Record<string, unknown>;
  };
}

interface Operation {
  readonly requestBody?: {
    required?: boolean;
    readonly content: Readonly<Record<string, { readonly schema?: { readonly $ref?: string } }>>;
  };
  readonly responses: Record<string, Answer>;
}

interface Answer {
  readonly content?: Readonly<Record<string, { readonly examples?: object }>>;
}

interface BodySchema {
  readonly required?: readonly string[];
  readonly minProperties?: number;
}

const DESCRIPTION = `Delivers deadline-bound reminders and webhook events, at least once, under an idempotency key that never changes.

- **Times** are RFC 3339; answers give them in UTC.
- **Lists** are read by cursor: \`next_cursor\` of a page is \`cursor\` of the next call with the same filter, until it is null.
- **Idempotency**: \`idempotency_key\` in the body, or the header \`Idempotency-Key\`. The same key with the same content is the same thing, however often it is sent.
- **Refusals** are problems (RFC 9457) with a stable \`code\` and, in \`errors\`, every member at fault.
- **Limits**: a key may make so many requests a minute in each process; beyond it 429 with \`Retry-After\`.
- **Compatibility**: answers may gain members; those that are here stay.`;

/** Gathers the OpenAPI document from the schemas of all routes that are added after this. */
export async function addDocument(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'duepost',
        version,
        summary: 'Reminders and webhook events that arrive, and the evidence that they did',
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      } as never,
      servers: [
        { url: '/', description: 'The server that gives this document.' },
        { url: 'http://127.0.0.1:8080', description: '`npm start`.' },
      ],
      components: {
        securitySchemes: {
          key: { type: 'http', scheme: 'bearer', description: 'An API key: `duepost key create`.' },
        },
      },
      tags: [
        { name: 'reminders', description: 'Notices for contract renewals' },
        { name: 'events', description: 'What happened, fanned out to endpoints' },
        { name: 'endpoints', description: 'Where things are sent' },
        { name: 'deliveries', description: 'One reminder or event to one endpoint' },
        { name: 'dead-letters', description: 'Deliveries that ended without success' },
        { name: 'audit', description: 'What was sent, when, and how it ended' },
        { name: 'calendars', description: 'When something is due, and why' },
        { name: 'shadow', description: 'What would have been sent, before anything is' },
        { name: 'operation', description: 'The process itself' },
      ],
    },
    transformObject: (document) => {
      const { openapiObject } = document as unknown as { openapiObject: Document };
      const operations = Object.values(openapiObject.paths).flatMap((path) => Object.values(path));
      for (const { requestBody } of operations) {
        const schema = requestBody?.content['application/json']?.schema;
        const name = schema?.$ref?.split('/').at(-1) ?? '';
        // A body without a member that is required may be left out.
        if (requestBody !== undefined && isOptional(openapiObject.components.schemas[name])) {
          requestBody.required = false;
        }
      }
      openapiObject.components.responses = shareProblems(operations);
      return { ...openapiObject, webhooks: describeWebhooks() } as never;
    },
    // Every schema that is shared has a name.
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
  });
}

function isOptional(schema: BodySchema | undefined): boolean {
  return schema?.required === undefined && schema?.minProperties === undefined;
}

/** Gives problems a name by their codes, and names them where they stood. */
function shareProblems(operations: readonly Operation[]): Record<string, unknown> {
  const shared: Record<string, unknown> = {};
  for (const { responses } of operations) {
    for (const [status, response] of Object.entries(responses)) {
      const codes = Object.keys(response.content?.['application/problem+json']?.examples ?? {});
      if (codes.length === 0) continue;
      const name = codes.map(pascalCase).join('Or');
      shared[name] = response;
      responses[status] = { $ref: `#/components/responses/${name}` } as never;
    }
  }
  return shared;
}

function pascalCase(code: string): string {
  return code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Serves the document; added last, like what it describes. */
export function addDocumentRoute(app: FastifyInstance): void {
  let document: string | undefined;
  app.get('/openapi.json', {
    schema: {
      operationId: 'getDocument',
      security: [],
      tags: ['operation'],
      summary: 'This document',
      response: { 200: Type.Record(Type.String(), Type.Any(), { description: 'OpenAPI 3.1.' }) },
    },
    handler: async (_request, reply) => {
      document ??= JSON.stringify(app.swagger());
      return reply.type('application/json').send(document);
    },
  });
}
