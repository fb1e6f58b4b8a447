import type { Received } from './received.ts';

/** One per key that took effect, i.e. whose handler answered 2xx for the first time. */
export interface PracticeEffect {
  readonly key: string;
  readonly deliveryId: string | undefined;
  readonly bodySha256: string;
  /** How often the key was called, before and after it took effect. */
  readonly calls: number;
  readonly firstAt: Date;
}

/** What a call says of itself. */
export interface PracticeRequest {
  readonly at: Date;
  readonly key: string | undefined;
  readonly deliveryId: string | undefined;
  readonly attempt: number | undefined;
  readonly bodySha256: string;
}

/** What became of it. */
export interface PracticeResult {
  /** `true`, or why not: the code of the refusal, or `not_checked`. */
  readonly verified: true | string;
  /** The status; undefined when no answer was sent. */
  readonly answered: number | undefined;
  /**
   * `first`: it took effect now; `repeat`: it had before; `conflict`: 409 or 422; `failed`: the script said so;
   * `refused`: not verified, no key or too large.
   */
  readonly kind: 'first' | 'repeat' | 'conflict' | 'failed' | 'refused';
}

export type PracticeCall = PracticeRequest & PracticeResult;

export interface Ledger {
  readonly note: (call: PracticeCall) => void;
  readonly effects: () => readonly PracticeEffect[];
  readonly calls: () => readonly PracticeCall[];
}

/** Who called, and what took effect. */
export function createLedger(): Ledger {
  const calls: PracticeCall[] = [];
  const callsByKey = new Map<string, number>();
  const effects = new Map<string, PracticeCall>();

  return {
    note(call) {
      calls.push(call);
      if (call.key === undefined || call.kind === 'refused') return;
      callsByKey.set(call.key, (callsByKey.get(call.key) ?? 0) + 1);
      if (call.kind === 'first') effects.set(call.key, call);
    },
    effects: () =>
      [...effects].map(([key, { deliveryId, bodySha256, at }]) => {
        return { key, deliveryId, bodySha256, calls: callsByKey.get(key) ?? 0, firstAt: at };
      }),
    calls: () => calls,
  };
}

const KEY_CODES: readonly string[] = ['idempotency_key_missing', 'idempotency_key_invalid'];

/** Reads from what the kit answered what became of a call. */
export function toResult(received: Received): PracticeResult {
  const answered = received.answer.status;
  switch (received.kind) {
    case 'handled':
      return { verified: true, answered, kind: 'first' };
    case 'replayed':
      return { verified: true, answered, kind: 'repeat' };
    case 'declined':
      return { verified: true, answered, kind: 'failed' };
    case 'refused':
      if (answered === 409 || answered === 422) return { verified: true, answered, kind: 'conflict' };
      return { verified: KEY_CODES.includes(received.code) || received.code, answered, kind: 'refused' };
  }
}
