import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type, { type TObject, type TSchema } from 'typebox';
import { parseIdempotencyHeader } from '../domain/idempotency-key.ts';
import { parseJsonBody } from '../domain/json.ts';
import { refuseField } from '../domain/refusal.ts';
import { refusalOf, validatorOf } from '../domain/requests/validate.ts';
import { readBody } from '../pipeline/accept/read-requests.ts';

/** JSON in any of its types (a merge patch is one), read so that numbers of payloads stay exact. */
export function addJsonParser(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    /^application\/([a-z0-9.-]+\+)?json\s*(;|$)/i,
    { parseAs: 'buffer' },
    async (_request: FastifyRequest, body: Buffer) =>
      // Many clients declare JSON and send nothing, where a body may be left out.
      body.length === 0 ? undefined : parseJsonBody(body),
  );
}

/** Reads a body that may be left out. */
export function readOptionalBody<T>(schema: TSchema, body: unknown): T {
  return readBody<T>(schema, body ?? {});
}

/** The key of the `Idempotency-Key` header, bare or quoted; undefined: there is none. */
export function readIdempotencyKey(request: FastifyRequest): string | undefined {
  const header = request.headers['idempotency-key'];
  return header === undefined ? undefined : parseIdempotencyHeader(String(header));
}

/**
 * Validates what stands in a query, with whole numbers as numbers; a member that is given twice is refused.
 *
 * Bodies pass: whoever reads one validates it, with the same schemas over AMQP.
 */
export function compileValidator({ schema, httpPart }: { schema: unknown; httpPart?: string }) {
  if (httpPart !== 'querystring') return () => true;
  const querySchema = schema as TObject;
  const validate = validatorOf(querySchema);
  return (query: Record<string, unknown>) => {
    try {
      const value = readQuery(querySchema, query);
      const faults = validate(value);
      return faults.length === 0 ? { value } : { error: refusalOf(faults) };
    } catch (error) {
      return { error: error as Error };
    }
  };
}

function readQuery(schema: TObject, query: Record<string, unknown>): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(query)) {
    if (Array.isArray(text)) throw refuseField(`/${name}`, `${name} is given more than once`);
    const isWhole = (schema.properties[name] as { type?: string } | undefined)?.type === 'integer';
    value[name] = isWhole && /^-?\d{1,15}$/.test(String(text)) ? Number(text) : text;
  }
  return value;
}

export const NO_QUERY = Type.Object({}, { additionalProperties: false });

/** What every list takes. */
export const PAGE_MEMBERS = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 500, default: 50, description: '50 if left out.' }),
  ),
  cursor: Type.Optional(Type.String({ maxLength: 1000, description: '`next_cursor` of the page before.' })),
};

export const DEFAULT_LIMIT = 50;
