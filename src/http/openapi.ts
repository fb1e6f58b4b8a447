import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { version } from '../runtime/build-info.ts';

/** Of the document what is looked at here. */
interface Document {
  readonly paths: Record<
    string,
    Record<
      string,
      { requestBody?: { required?: boolean; content: Record<string, { schema?: { $ref?: string } }> } }
    >
  >;
  readonly components: { readonly schemas: Record<string, BodySchema> };
}

interface BodySchema {
  readonly required?: readonly string[];
  readonly minProperties?: number;
}

function isOptional(schema: BodySchema | undefined): boolean {
  return schema?.required === undefined && schema?.minProperties === undefined;
}

/** Gathers the OpenAPI document from the schemas of all routes that are added after this. */
export async function addDocument(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'duepost',
        version,
        description:
          'Delivers deadline-bound reminders and webhook events. Times are RFC 3339 in UTC, lists are read by cursor, every refusal is a problem (RFC 9457) with a stable `code`.',
      },
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
      const { openapiObject } = document as { openapiObject: Document };
      for (const operation of Object.values(openapiObject.paths).flatMap((path) => Object.values(path))) {
        const schema = operation.requestBody?.content['application/json']?.schema;
        const name = schema?.$ref?.split('/').at(-1) ?? '';
        // A body without a member that is required may be left out.
        if (operation.requestBody !== undefined && isOptional(openapiObject.components.schemas[name])) {
          operation.requestBody.required = false;
        }
      }
      return openapiObject as never;
    },
    // Every schema that is shared has a name.
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
  });
}

/** Serves the document; added last, like what it describes. */
export function addDocumentRoute(app: FastifyInstance): void {
  let document: string | undefined;
  app.get('/openapi.json', {
    schema: {
      operationId: 'getDocument',
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
