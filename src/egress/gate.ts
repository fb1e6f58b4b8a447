import type { Client, Exchange } from './exchange.ts';

interface Host {
  running: number;
  readonly waiting: Exchange[];
}

/** Lets a number of exchanges be under way to one host and port, and the others wait their turn. */
export interface Gate {
  enter(exchange: Exchange): void;
  /** Every exchange that entered leaves once it has ended, whether it got its turn or not. */
  leave(exchange: Exchange): void;
}

export function createGate(client: Client, limit: number): Gate {
  const hosts = new Map<string, Host>();

  function enter(exchange: Exchange): void {
    const { target, again } = exchange.request;
    let host = hosts.get(target.origin);
    if (host === undefined) {
      host = { running: 0, waiting: [] };
      hosts.set(target.origin, host);
    }
    // A second try had its turn.
    if (host.running < limit || again) begin(host, exchange);
    else host.waiting.push(exchange);
  }

  function begin(host: Host, exchange: Exchange): void {
    host.running += 1;
    exchange.begun = true;
    client.begin(exchange);
  }

  function leave(exchange: Exchange): void {
    const { origin } = exchange.request.target;
    const host = hosts.get(origin);
    if (host === undefined) return;
    if (!exchange.begun) {
      host.waiting.splice(host.waiting.indexOf(exchange), 1);
      return;
    }
    host.running -= 1;
    const next = host.waiting.shift();
    if (next !== undefined) begin(host, next);
    else if (host.running === 0) hosts.delete(origin);
  }

  return { enter, leave };
}
