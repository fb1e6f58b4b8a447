import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';

/** The part of scripts/bench that is used here. */
interface BenchProduct {
  addEndpoint(name: string): Promise<{ endpointId: string }>;
  createKey(): Promise<{ key: string }>;
  fill(count: number, options: { endpoint: string }): Promise<void>;
  startRoles(roles: string): { stop(): Promise<void> };
  untilEnded(): Promise<void>;
  check(deliveries: number): Promise<unknown>;
  close(): Promise<void>;
}

const bench = pathToFileURL(join(packageRoot, 'scripts/bench/product.mjs')).href;
const bodies: string[] = [];
const receiver = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk: Buffer) => {
    body += chunk.toString();
  });
  request.on('end', () => {
    bodies.push(body);
    response.end('ok');
  });
});

beforeAll(() => new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve)));
afterAll(() => new Promise((resolve) => receiver.close(resolve)));

test('what is measured is the product as it is built: it takes in, delivers and keeps the evidence', async () => {
  const { openProduct, dropTemplates } = await import(bench);
  const { port } = receiver.address() as AddressInfo;
  const product: BenchProduct = await openProduct({ url: `http://127.0.0.1:${port}` });
  try {
    const { endpointId } = await product.addEndpoint('sink');
    expect((await product.createKey()).key).toMatch(/^dpk_/);
    await product.fill(20, { endpoint: endpointId });
    product.startRoles('worker');
    await product.untilEnded();
    await product.check(20);
    expect(new Set(bodies).size).toBe(20);
  } finally {
    await product.close();
    await dropTemplates();
  }
});
