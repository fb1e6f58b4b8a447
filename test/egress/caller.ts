import { afterEach } from 'vitest';
import { type Egress, type EgressConfig, openEgress } from '../../src/egress/open.ts';
import type { Answer, Call } from '../../src/egress/send.ts';
import { closePeers } from './peers.ts';

/** Everything the suites promise holds for each of them. */
export const CLIENTS = ['node-fetch', 'undici'] as const;

export const BODY = Buffer.from('{"type":"order.created","data":{"id":10241}}');

type Caller = (url: string, call?: Partial<Call>) => Promise<Answer>;

/** What opens an egress that may call this machine; it, and all peers, are closed after each test. */
export function openerFor(client: EgressConfig['client']): (config?: Partial<EgressConfig>) => Caller {
  const opened: Egress[] = [];
  afterEach(async () => {
    for (const egress of opened.splice(0)) await egress.close();
    await closePeers();
  });
  return (config = {}) => {
    const egress = openEgress({ client, allow: ['127.0.0.0/8'], allowHttp: true, ...config });
    opened.push(egress);
    return (url, call = {}) =>
      egress.send({
        url,
        headers: { 'Idempotency-Key': 'ord_10241' },
        body: BODY,
        timeoutMs: 5_000,
        ...call,
      });
  };
}
