import { type Policy, parsePolicy } from '../../domain/policy.ts';
import type { CallTls } from '../../egress/send.ts';
import { type Batcher, createBatcher } from '../../runtime/batch.ts';
import { type EndpointForCall, listEndpointsForCall } from '../../store/endpoints-for-call.ts';
import type { Queryable } from '../../store/pool.ts';
import type { SecretBox } from '../secrets.ts';

/** What a call needs to know of its endpoint, secrets and key opened. */
export interface CallTarget {
  readonly revision: number;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly mode: EndpointForCall['mode'];
  /** Undefined: the default of what is sent. */
  readonly policy: Policy | undefined;
  readonly secrets: readonly { readonly key: Buffer; readonly expiresAt: Date | undefined }[];
  /** Undefined: the endpoint has no certificates of its own. */
  readonly tls: CallTls | undefined;
}

/** Endpoints as they are: a worker reads them again only when they have changed. */
export interface EndpointCache {
  /**
   * @param revision  which the claim was made under; what is remembered of any other is read again: of an older one it
   *   has changed since, of a newer one the claim was made before, or the database restored to an earlier state
   */
  find(endpointId: string, revision: number): Promise<CallTarget>;
  /** As it is now. */
  refresh(endpointId: string): Promise<CallTarget>;
}

const MAX_REMEMBERED = 10_000;

export function createEndpointCache(db: Queryable, box: SecretBox): EndpointCache {
  const known = new Map<string, CallTarget>();
  const loads: Batcher<string, EndpointForCall | undefined> = createBatcher({
    lanes: 1,
    maxBatch: 250,
    run: async (ids) => {
      const found = new Map(
        (await listEndpointsForCall(db, [...new Set(ids)])).map((e) => [e.endpointId, e]),
      );
      return ids.map((id) => found.get(id));
    },
  });

  async function refresh(endpointId: string): Promise<CallTarget> {
    const endpoint = await loads.add(endpointId);
    if (endpoint === undefined) throw new Error(`${endpointId} has no secret that is in force`);
    const target: CallTarget = {
      revision: endpoint.revision,
      url: endpoint.url,
      headers: endpoint.headers,
      mode: endpoint.mode,
      policy: endpoint.policy === undefined ? undefined : parsePolicy(endpoint.policy),
      secrets: endpoint.secrets.map((s) => ({
        key: box.open(endpointId, s.ciphertext),
        expiresAt: s.expiresAt,
      })),
      tls: openTls(endpoint, box),
    };
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(endpointId, target);
    return target;
  }

  return {
    async find(endpointId, revision) {
      const remembered = known.get(endpointId);
      return remembered?.revision === revision ? remembered : refresh(endpointId);
    },
    refresh,
  };
}

function openTls({ endpointId, storedTls }: EndpointForCall, box: SecretBox): CallTls | undefined {
  const { ca, certificate, key } = storedTls;
  if (ca === undefined && certificate === undefined) return undefined;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key: box.open(endpointId, key).toString() }),
  };
}
