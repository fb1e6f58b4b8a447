/** What the receiver answers; recorded when it is a 2xx, and given again to every repeat. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
}

/** What identifies a call; `deliveryId` is undefined where the signature does not cover it. */
export interface KeyedCall {
  readonly key: string;
  readonly deliveryId: string | undefined;
  /** Lower-case hex. */
  readonly bodySha256: string;
}

export interface Recorded {
  readonly key: string;
  readonly bodySha256: string;
  readonly answer: Answer;
}

/** The right to run the handler once; exactly one of `record` and `release` ends it. */
export interface Claimed<Client> {
  readonly state: 'claimed';
  /** What the handler writes with, so that its effect and the record are one transaction; undefined if there is none. */
  readonly client: Client;
  /** Keeps the answer for repeats. `false`: another run got there first, and nothing new is recorded. */
  record(answer: Answer): Promise<boolean>;
  /** Forgets the claim: the key is free again. Does not throw. */
  release(): Promise<void>;
}

/**
 * What is known of a key: `running` somewhere at this moment, `recorded` with its answer, or `claimed` now.
 * `recorded` is also the answer when the delivery id was recorded under another key: the delivery id is signed, the
 * key is not, and one delivery has one key.
 */
export type Claim<Client> =
  | Claimed<Client>
  | { readonly state: 'running' }
  | { readonly state: 'recorded'; readonly recorded: Recorded };

/** Three functions: `claim`, and the `record` or `release` that ends it. */
export interface Store<Client> {
  claim(call: KeyedCall): Promise<Claim<Client>>;
}
