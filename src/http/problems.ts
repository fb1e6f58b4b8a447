import { type Fault, Refusal, type RefusalCode } from '../domain/refusal.ts';
import { scrub } from '../runtime/scrub.ts';
import { isTransient } from '../store/pool.ts';

/** What only HTTP can refuse, and what is our fault. */
type HttpCode = 'method_not_allowed' | 'unsupported_media_type' | 'unavailable' | 'internal_error';

export type ProblemCode = RefusalCode | HttpCode;

/** Status and title of every code; a code that is missing does not compile. */
export const PROBLEMS: Record<ProblemCode, { readonly status: number; readonly title: string }> = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  idempotency_key_missing: { status: 400, title: 'An idempotency key is missing' },
  unsupported_version: { status: 400, title: 'The version is not supported' },
  unsupported_command: { status: 400, title: 'The command is not supported' },
  unauthorized: { status: 401, title: 'A valid API key is needed' },
  forbidden: { status: 403, title: 'The API key does not allow this' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  already_delivered: { status: 409, title: 'It was delivered already' },
  ambiguous_reference: { status: 409, title: 'The reference is ambiguous' },
  transition_not_allowed: { status: 409, title: 'Not possible in its present state' },
  endpoint_disabled: { status: 409, title: 'The endpoint is disabled' },
  name_taken: { status: 409, title: 'The name is taken' },
  payload_too_large: { status: 413, title: 'The payload is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key was used for something else' },
  unknown_jurisdiction: { status: 422, title: 'The jurisdiction is unknown' },
  time_zone_required: { status: 422, title: 'A time zone is needed' },
  window_closed: { status: 422, title: 'There is no time for a call' },
  too_broad: { status: 422, title: 'Too much would have to be read' },
  url_not_allowed: { status: 422, title: 'The URL is not allowed' },
  rate_limited: { status: 429, title: 'Too many requests' },
  internal_error: { status: 500, title: 'A fault of duepost' },
  unavailable: { status: 503, title: 'Not available at the moment' },
};

/** RFC 9457, with a stable `code` and the members at fault as JSON pointers. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly errors?: readonly Fault[];
}

export const PROBLEM_TYPE = 'application/problem+json';

export function createProblem(code: ProblemCode, detail: string, errors: readonly Fault[] = []): Problem {
  const { status, title } = PROBLEMS[code];
  return {
    type: `urn:duepost:problem:${code}`,
    title,
    status,
    code,
    detail: scrub(detail),
    ...(errors.length === 0
      ? {}
      : { errors: errors.map(({ path, message }) => ({ path, message: scrub(message) })) }),
  };
}

/** What became of a request, as a problem; nothing of a fault of ours is told. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Refusal) return createProblem(error.code, error.message, error.faults);
  if (isTransient(error)) {
    return createProblem(
      'unavailable',
      'the database does not answer: try again, with the same idempotency key',
    );
  }
  return ofFramework(error) ?? createProblem('internal_error', 'something went wrong here; it was logged');
}

/** What Fastify refuses before a handler runs. */
function ofFramework(error: unknown): Problem | undefined {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (typeof code !== 'string' || !code.startsWith('FST_ERR_')) return undefined;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return createProblem('payload_too_large', 'the body is larger than is allowed here');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return createProblem('unsupported_media_type', 'send JSON, with Content-Type: application/json');
    default:
      return typeof statusCode === 'number' && statusCode < 500
        ? createProblem('invalid_request', 'the request is not valid HTTP')
        : undefined;
  }
}
