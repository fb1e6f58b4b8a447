import { createHash } from 'node:crypto';
import { type HeaderSource, readAttempt, readIdempotencyKey } from './headers.ts';
import { type Received, refuse } from './received.ts';
import type { Answer, Claimed, Recorded, Store } from './store.ts';

/** A call that is verified and new: what the handler gets. */
export interface Call {
  readonly key: string;
  /** `webhook-id`; undefined where the scheme does not sign it. */
  readonly deliveryId: string | undefined;
  /** From `X-Delivery-Attempt`: for logs, never for a decision. */
  readonly attempt: number | undefined;
  readonly body: Uint8Array;
  /** The body as JSON. @throws SyntaxError */
  readonly json: () => unknown;
}

/**
 * The effect of a call. A 2xx answer (no answer means 204) is recorded; with any other answer, or by throwing, the
 * handler says that nothing happened: nothing is recorded and the next attempt runs it again.
 */
export type Handle<Client> = (call: Call, client: Client) => Promise<Answer | undefined>;

export interface RequestOnce<Client> {
  readonly headers: HeaderSource;
  readonly body: Uint8Array;
  /** Only if the signature covers it. */
  readonly deliveryId: string | undefined;
  readonly store: Store<Client>;
  readonly handle: Handle<Client>;
}

async function runHandler<Client>(
  handle: Handle<Client>,
  call: Call,
  claim: Claimed<Client>,
): Promise<Received> {
  let answer: Answer;
  try {
    answer = (await handle(call, claim.client)) ?? { status: 204 };
  } catch (error) {
    await claim.release();
    throw error;
  }
  if (answer.status < 200 || answer.status > 299) {
    await claim.release();
    return { kind: 'declined', answer };
  }
  if (await claim.record(answer)) return { kind: 'handled', answer };
  return refuse('in_progress', 'another call with this key was faster; repeat this one for its answer');
}

function replay(recorded: Recorded, key: string, bodySha256: string): Received {
  if (recorded.key !== key) {
    return refuse('idempotency_key_reused', 'this delivery was recorded under another key');
  }
  if (recorded.bodySha256 !== bodySha256) {
    return refuse('idempotency_key_reused', 'this key was recorded with another body');
  }
  const headers = { ...recorded.answer.headers, 'idempotency-replayed': 'true' };
  return { kind: 'replayed', answer: { ...recorded.answer, headers } };
}

/** Runs the handler once per `Idempotency-Key`; the part of `receive` that follows the verification. */
export async function handleOnce<Client>(request: RequestOnce<Client>): Promise<Received> {
  const { headers, body, deliveryId, store, handle } = request;
  const key = readIdempotencyKey(headers);
  if (key === undefined) {
    return refuse('idempotency_key_missing', 'the header Idempotency-Key is missing');
  }
  if (key === false) {
    return refuse('idempotency_key_invalid', 'Idempotency-Key is not one key of 1 to 255 characters');
  }
  const bodySha256 = createHash('sha256').update(body).digest('hex');
  const claim = await store.claim({ key, deliveryId, bodySha256 });
  if (claim.state === 'running') {
    return refuse('in_progress', 'the first call with this key is still being handled');
  }
  if (claim.state === 'recorded') return replay(claim.recorded, key, bodySha256);
  const json = (): unknown => JSON.parse(new TextDecoder().decode(body));
  return runHandler(handle, { key, deliveryId, attempt: readAttempt(headers), body, json }, claim);
}
