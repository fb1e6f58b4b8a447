import { type Handle, handleOnce } from './handle-once.ts';
import type { HeaderSource } from './headers.ts';
import { type Received, refuse } from './received.ts';
import type { Store } from './store.ts';
import { type Scheme, VerificationError, type Verified, verify } from './verify.ts';

export interface ReceiverOptions<Client> {
  /** One secret, or several while one is being replaced. */
  readonly secret: string | readonly string[];
  readonly store: Store<Client>;
  readonly handle: Handle<Client>;
  /** Default `standard-webhooks`. */
  readonly scheme?: Scheme | undefined;
  /** Default 300. */
  readonly toleranceSeconds?: number | undefined;
}

export interface ReceiveOptions<Client> extends ReceiverOptions<Client> {
  readonly request: { readonly headers: HeaderSource; readonly body: Uint8Array };
  /** Default: this moment. */
  readonly now?: Date | undefined;
}

/**
 * Verifies a call and runs the handler once per `Idempotency-Key`, as draft-ietf-httpapi-idempotency-key-header says:
 * repeats get the recorded answer (with `idempotency-replayed: true`), 409 while the first still runs, 422 when the
 * key comes with another body, 400 without a key. Signatures that are not believed get 400 or 401 by name.
 *
 * @throws what the handler or the store threw, after giving the key back, and VerificationError `bad_secret`: answer
 *   these with a 5xx, so that the sender tries again
 */
export async function receive<Client>(options: ReceiveOptions<Client>): Promise<Received> {
  const { request, secret, store, handle, scheme, toleranceSeconds, now = new Date() } = options;
  let verified: Verified;
  try {
    verified = verify({ ...request, secret, now, scheme, toleranceSeconds });
  } catch (error) {
    if (!(error instanceof VerificationError) || error.code === 'bad_secret') throw error;
    return refuse(error.code, error.message);
  }
  return handleOnce({ ...request, deliveryId: verified.deliveryId, store, handle });
}
