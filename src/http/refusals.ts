import Type, { type TSchema } from 'typebox';
import { Problem } from './answers.ts';
import { refTo } from './describe.ts';
import { createProblem, PROBLEM_TYPE, PROBLEMS, type ProblemCode } from './problems.ts';

/** What any call of the API may be refused for, whatever it is about. */
const ALWAYS: readonly ProblemCode[] = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'rate_limited',
  'internal_error',
  'unavailable',
];

/** What a call with a body may be refused for. */
const WITH_BODY: readonly ProblemCode[] = ['payload_too_large', 'unsupported_media_type'];

const RETRY_AFTER = { 'Retry-After': Type.Integer({ description: 'Seconds to wait.' }) };

/** Headers that come with a code. */
const HEADERS: { readonly [Code in ProblemCode]?: Readonly<Record<string, TSchema>> } = {
  unauthorized: { 'WWW-Authenticate': Type.String({ description: 'How to authenticate: `Bearer`.' }) },
  rate_limited: RETRY_AFTER,
  unavailable: RETRY_AFTER,
};

/** What is told with a code, for instance; the text is for people and may change. */
const FOR_INSTANCE: { readonly [Code in ProblemCode]?: string } = {
  invalid_request: 'renewal_date is missing',
  forbidden: 'the API key needs the scope publish',
  too_broad:
    'finding these took longer than a statement may (database.statementTimeoutMs): narrow it by contract or endpoint',
  rate_limited: 'this key may make 600 requests a minute: wait 3 s',
};

/**
 * The answers of a route that are problems, by status.
 *
 * @param codes  what this route refuses beside what all do
 */
export function refusals(
  codes: readonly ProblemCode[],
  { hasBody }: { readonly hasBody: boolean },
): Record<string, TSchema> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of [...ALWAYS, ...(hasBody ? WITH_BODY : []), ...codes]) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries([...byStatus].map(([status, of]) => [status, refusal(of)]));
}

function refusal(codes: readonly ProblemCode[]): TSchema {
  const headers = Object.assign({}, ...codes.map((code) => HEADERS[code])) as Record<string, TSchema>;
  const examples = codes.map((code) => [code, { value: exampleOf(code) }]);
  return Type.Unsafe({
    description: codes.map((code) => `${PROBLEMS[code].title} (\`${code}\`).`).join(' '),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { [PROBLEM_TYPE]: { schema: refTo(Problem), examples: Object.fromEntries(examples) } },
  });
}

function exampleOf(code: ProblemCode) {
  const detail = FOR_INSTANCE[code] ?? PROBLEMS[code].title;
  return createProblem(
    code,
    detail,
    code === 'invalid_request' ? [{ path: '/renewal_date', message: detail }] : [],
  );
}
