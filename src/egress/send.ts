/** A certificate authority and a client certificate of an endpoint's own, as PEM. */
export interface CallTls {
  /** Takes the place of the public authorities. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** One POST to a customer's endpoint. */
export interface Call {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** From now to the last byte of the answer that is read: name resolution, connection, TLS and all. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly tls?: CallTls;
}

/** What came of a call, and the evidence of it. All text is escaped and capped. */
export interface Answer {
  /** False only where it is certain that no byte of the request left. */
  readonly sent: boolean;
  /** Undefined: no final response headers came. */
  readonly status?: number;
  /** A stable code, `tls_failure:<CODE>` included; undefined when a status other than 3xx came. */
  readonly error?: string;
  /** For people; without the path or query of the URL, which may hold secrets. */
  readonly detail?: string;
  /** The header as it was sent, when exactly one was. */
  readonly retryAfter?: string;
  readonly durationMs: number;
  readonly remoteAddress?: string;
  /** SHA-256 of the server's certificate (DER), lower-case hex. */
  readonly certificateSha256?: string;
  /** SHA-256 of the body as far as it was read (8 KiB), lower-case hex; undefined for an empty one. */
  readonly responseBodySha256?: string;
  readonly responseExcerpt?: string;
  /** A few headers that help to find the call at the receiver. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
}

/** Makes one call. Nothing a receiver does makes it reject: that is kept for faults of our own. */
export type Send = (call: Call) => Promise<Answer>;
