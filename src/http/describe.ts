import Type, { type TObject, type TSchema, type TSchemaOptions } from 'typebox';

// What schemas of answers are made of. Members may be added: these objects are open, unlike requests.

export function orNull<T extends TSchema>(schema: T, options: TSchemaOptions = {}) {
  return Type.Union([schema, Type.Null()], options);
}

export const Instant = Type.String({ format: 'date-time', description: 'RFC 3339, UTC.' });
export const Day = Type.String({ format: 'date' });
export const Text = Type.String();
export const Whole = Type.Integer();
export const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256, lower-case hex.' });

/** An id in an answer, such as `dlv_…`. */
export function Id(prefix: 'dlv' | 'rem' | 'evt' | 'ep') {
  return Type.String({
    pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`,
    examples: [`${prefix}_01k8r2v9d3f4x7q1z5b6n8m0wy`],
  });
}

/** A schema that has a name in the document. */
export function named<T extends Record<string, TSchema>>(
  $id: string,
  members: T,
  options: TSchemaOptions = {},
) {
  return Type.Object(members, { ...options, $id });
}

/** The schema by its name. */
export function refTo(schema: object): TSchema {
  return Type.Unsafe({ $ref: `${(schema as { $id?: string }).$id}#` });
}

/** A page of a list whose rows have a name. */
export function pageOf(schema: TObject): TObject {
  return named(`${(schema as { $id?: string }).$id}Page`, {
    data: Type.Array(refTo(schema)),
    next_cursor: orNull(Text, {
      description: 'For `cursor` of the next call, with the same filter; null: this page is the last.',
    }),
    has_more: Type.Boolean(),
  });
}

/** An answer with one of the named schemas. */
export function answer(
  schema: object,
  description: string,
  headers: Readonly<Record<string, TSchema>> = {},
): TSchema {
  return Type.Unsafe({
    description,
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { 'application/json': { schema: refTo(schema) } },
  });
}
