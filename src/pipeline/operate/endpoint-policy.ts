import { type Policy, parsePolicy, policyToJson } from '../../domain/policy.ts';
import { refuseField } from '../../domain/refusal.ts';
import type { EndpointPatchBody } from '../../domain/requests/schemas.ts';

/**
 * `policy`, or the shorthand `retry_schedule` and `max_attempts` that sets one; undefined: the default.
 *
 * @param before  what `max_attempts` alone changes
 * @throws Refusal for both at once, or a policy that is none
 */
export function policyOf(
  body: Pick<EndpointPatchBody, 'policy' | 'retry_schedule' | 'max_attempts'>,
  before?: Policy,
): unknown {
  const { policy, retry_schedule, max_attempts } = body;
  if (retry_schedule !== undefined) {
    if (policy !== undefined) throw refuseField('/policy', 'give policy or retry_schedule, not both');
    return policyToJson(
      parsePolicy(
        { kind: 'schedule', retry_schedule, ...(max_attempts === undefined ? {} : { max_attempts }) },
        '',
      ),
    );
  }
  if (max_attempts !== undefined) {
    if (policy !== undefined) throw refuseField('/policy', 'give policy or max_attempts, not both');
    return policyToJson(
      parsePolicy({ ...(before ? policyToJson(before) : { kind: 'schedule' }), max_attempts }, ''),
    );
  }
  return policy === undefined || policy === null ? undefined : policyToJson(parsePolicy(policy));
}
