import { isId } from './ids.ts';

/** The hint that a delivery is probably due: identifiers only. */
export interface WakeUp {
  readonly deliveryId: string;
  /** Undefined where the delivery belongs to no contract. */
  readonly contractRef?: string;
  /** The attempt it asks for, from 1. */
  readonly attempt: number;
}

/** The lengths of the delay ladder, in seconds. */
export const TIER_SECONDS: readonly number[] = Array.from({ length: 12 }, (_, exponent) => 2 ** exponent);

/** The routing key of something that is due. */
export const DUE_NOW = 'now';

const VERSION = 1;
const MAX_BYTES = 16 * 1024;
const MAX_ATTEMPT = 1_000_000;
const TIERS = TIER_SECONDS.map(tierOf);
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The routing key of the tier that waits so many seconds. */
export function tierOf(seconds: number): string {
  return `t${String(seconds).padStart(4, '0')}`;
}

/**
 * The routing key under which a wake-up enters the ladder: the largest tier not longer than what remains, so that it
 * never comes out late; what comes out early is sent on.
 *
 * @param remainingMs  any length, negative included; throws RangeError for NaN
 */
export function tierFor(remainingMs: number): string {
  if (Number.isNaN(remainingMs)) throw new RangeError('the time that remains is not a number');
  if (remainingMs < 1000) return DUE_NOW;
  const seconds = Math.min(Math.floor(remainingMs / 1000), TIER_SECONDS.at(-1) as number);
  // Not log2: it rounds 2047.999… up to a tier that is too long.
  return TIERS[31 - Math.clz32(seconds)] as string;
}

export function encodeWakeUp(wakeUp: WakeUp): Buffer {
  return Buffer.from(
    JSON.stringify({
      v: VERSION,
      delivery_id: wakeUp.deliveryId,
      contract_ref: wakeUp.contractRef ?? null,
      attempt: wakeUp.attempt,
    }),
  );
}

/** Reads a wake-up; the problem says what is wrong without repeating what was sent. Names it does not know are ignored. */
export function parseWakeUp(body: Buffer): WakeUp | { readonly problem: string } {
  if (body.length > MAX_BYTES) return { problem: `the body is longer than ${MAX_BYTES} bytes` };
  const message = parseObject(body);
  if (message === undefined) return { problem: 'the body is not a JSON object in UTF-8' };
  const { v, delivery_id: deliveryId, contract_ref: contractRef, attempt } = message;
  if (v !== VERSION) return { problem: `v must be ${VERSION}` };
  if (typeof deliveryId !== 'string' || !isId('dlv', deliveryId))
    return { problem: 'delivery_id must be the id of a delivery' };
  if (contractRef !== null && typeof contractRef !== 'string')
    return { problem: 'contract_ref must be text or null' };
  if (!isAttempt(attempt)) return { problem: `attempt must be a whole number from 1 to ${MAX_ATTEMPT}` };
  return { deliveryId, attempt, ...(contractRef === null ? {} : { contractRef }) };
}

/** Each delivery once, with the furthest attempt that is asked for. */
export function furthest(wakeUps: readonly WakeUp[]): readonly WakeUp[] {
  const byId = new Map<string, WakeUp>();
  for (const wakeUp of wakeUps) {
    const known = byId.get(wakeUp.deliveryId);
    if (known === undefined || known.attempt < wakeUp.attempt) byId.set(wakeUp.deliveryId, wakeUp);
  }
  return [...byId.values()];
}

function parseObject(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(UTF8.decode(body));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function isAttempt(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_ATTEMPT;
}
