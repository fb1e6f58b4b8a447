export { expressReceiver } from './adapters/express.ts';
export { fastifyReceiver } from './adapters/fastify.ts';
export { type NodeHttpOptions, nodeHttpReceiver } from './adapters/node-http.ts';
export { webReceiver } from './adapters/web.ts';
export type { Call, Handle } from './handle-once.ts';
export type { HeaderSource } from './headers.ts';
export { type ReceiveOptions, type ReceiverOptions, receive } from './receive.ts';
export type { Received, RefusedCode } from './received.ts';
export type { Answer, Claim, Claimed, KeyedCall, Recorded, Store } from './store.ts';
export { createMemoryStore, type MemoryStoreOptions } from './store-memory.ts';
export {
  createPostgresStore,
  forgetReceipts,
  type PooledClient,
  type PostgresClient,
  type PostgresPool,
  RECEIPT_TABLE_SQL,
} from './store-postgres.ts';
export {
  type Scheme,
  type Verification,
  type VerificationCode,
  VerificationError,
  type Verified,
  verify,
} from './verify.ts';
