import { sha256Hex } from '../../domain/json.ts';

const PLAIN = /^[A-Za-z0-9_\-:./]{1,150}$/;

/**
 * The idempotency key of a reminder that comes without one: `reminder:<contract>:<renewal date>`, the contract as its
 * SHA-256 where it has characters that a key cannot have. The same contract renewing on the same day is the same thing.
 */
export function reminderKey(contractRef: string, renewalDate: string): string {
  const contract = PLAIN.test(contractRef) ? contractRef : `sha256-${sha256Hex(contractRef)}`;
  return `reminder:${contract}:${renewalDate}`;
}
