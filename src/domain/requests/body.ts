import { canonicalJson, sha256Hex, stringifyJson } from '../json.ts';

/** The bytes that an endpoint receives; stored once, the same on every attempt. */
export interface Body {
  readonly bytes: Buffer;
  readonly sha256: Buffer;
  /** Where the producer's payload begins. */
  readonly dataOffset: number;
}

/** The body of an event: `{"type","timestamp","data"}`. */
export function eventBody(event: {
  readonly type: string;
  readonly at: Date;
  readonly payload: unknown;
}): Body {
  return compose(
    { type: event.type, timestamp: event.at.toISOString() },
    Buffer.from(stringifyJson(event.payload ?? null)),
  );
}

/** What may stand around a payload in a request, a command or a line of a file. */
export const ENVELOPE_BYTES = 64 * 1_024;

export interface ReminderHead {
  readonly type: string;
  readonly at: Date;
  readonly contractRef: string;
  readonly renewalDate: string;
  readonly noticePeriod: string;
  readonly deadlineAt: Date;
}

/** The body of a reminder: an event's, plus what the notice is about. */
export function reminderBody(head: ReminderHead, payload: unknown): Body {
  return reminderBodyOfData(head, Buffer.from(stringifyJson(payload ?? {})));
}

/** The body of a reminder whose timing has moved, with the payload's bytes as they were. */
export function reminderBodyOfData(head: ReminderHead, data: Buffer): Body {
  return compose(
    {
      type: head.type,
      timestamp: head.at.toISOString(),
      contract_ref: head.contractRef,
      renewal_date: head.renewalDate,
      notice_period: head.noticePeriod,
      deadline_at: head.deadlineAt.toISOString(),
    },
    data,
  );
}

function compose(head: Record<string, string>, data: Buffer): Body {
  const before = Buffer.from(`${JSON.stringify(head).slice(0, -1)},"data":`);
  const bytes = Buffer.concat([before, data, Buffer.from('}')]);
  return { bytes, sha256: Buffer.from(sha256Hex(bytes), 'hex'), dataOffset: before.length };
}

/** The producer's payload within the bytes of a body. */
export function dataOf(body: { readonly bytes: Buffer; readonly dataOffset: number }): Buffer {
  return body.bytes.subarray(body.dataOffset, -1);
}

/** What makes two requests under one key the same: SHA-256 of the canonical JSON of what matters. */
export function contentSha256(content: Readonly<Record<string, unknown>>): Buffer {
  return Buffer.from(sha256Hex(canonicalJson(content)), 'hex');
}
