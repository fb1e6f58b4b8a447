import Type, { type TEnum, type TSchemaOptions } from 'typebox';

/** One of a few words, as one enumeration: generators of clients make a type of it, where they would wrap a union. */
export function oneOf<Words extends string[]>(
  words: readonly [...Words],
  options: TSchemaOptions = {},
): TEnum<Words> {
  return Type.Enum<Words>(words, { ...options, type: 'string' });
}
