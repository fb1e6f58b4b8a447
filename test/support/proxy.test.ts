import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Proxy, startProxy } from './proxy.ts';

describe('the proxy', () => {
  let echo: Server;
  let received: string;
  let proxy: Proxy;
  const clients: Socket[] = [];

  beforeEach(async () => {
    received = '';
    echo = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        received += chunk.toString();
        socket.write(`re:${chunk.toString()}`);
      });
    }).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    proxy = await startProxy({ targetPort: (echo.address() as AddressInfo).port });
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await proxy.close();
    await new Promise((resolve) => echo.close(resolve));
  });

  function dial(): { socket: Socket; answers: () => string; isOpen: () => boolean } {
    const socket = connect({ host: '127.0.0.1', port: proxy.port });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('error', () => {});
    clients.push(socket);
    return { socket, answers: () => text, isOpen: () => !socket.destroyed };
  }

  async function dialAndGreet() {
    const client = dial();
    client.socket.write('hello');
    await vi.waitFor(() => expect(client.answers()).toBe('re:hello'));
    return client;
  }

  it('carries bytes both ways', async () => {
    await dialAndGreet();
    expect(received).toBe('hello');
  });

  it('carries more than the buffers hold', async () => {
    const client = dial();
    const size = 5_000_000;
    client.socket.write('x'.repeat(size));
    await vi.waitFor(() => expect(client.answers().length).toBeGreaterThan(size), { timeout: 20_000 });
    expect(received.length).toBe(size);
  });

  it('cuts what is open and serves what comes next', async () => {
    const client = await dialAndGreet();
    proxy.cut();
    await vi.waitFor(() => expect(client.isOpen()).toBe(false));
    await dialAndGreet();
  });

  it('refuses new connections until told otherwise', async () => {
    const before = await dialAndGreet();
    proxy.refuse(true);
    const refused = dial();
    await vi.waitFor(() => expect(refused.isOpen()).toBe(false));
    expect(before.isOpen()).toBe(true);
    proxy.refuse(false);
    await dialAndGreet();
  });

  it('forwards nothing while frozen, and all of it afterwards', async () => {
    const client = await dialAndGreet();
    proxy.freeze(true);
    client.socket.write(' again');
    const late = dial();
    await once(late.socket, 'connect');
    late.socket.write('late');
    // A round trip past the proxy gives it every chance to forward what it must not.
    const bypass = connect({ host: '127.0.0.1', port: (echo.address() as AddressInfo).port });
    clients.push(bypass);
    bypass.write('!');
    await once(bypass, 'data');
    expect(received).toBe('hello!');
    expect(client.isOpen()).toBe(true);
    proxy.freeze(false);
    await vi.waitFor(() => expect(client.answers()).toBe('re:hellore: again'));
    await vi.waitFor(() => expect(late.answers()).toBe('re:late'));
  });

  it('loses the replies while the requests arrive', async () => {
    const client = await dialAndGreet();
    proxy.dropReplies(true);
    client.socket.write(' lost');
    await vi.waitFor(() => expect(received).toBe('hello lost'));
    proxy.dropReplies(false);
    client.socket.write(' kept');
    await vi.waitFor(() => expect(client.answers()).toMatch(/ kept$/));
  });

  it('shows what clients send', async () => {
    const seen: string[] = [];
    proxy.onClientData((chunk) => seen.push(chunk.toString()));
    await dialAndGreet();
    expect(seen.join('')).toBe('hello');
  });

  it('cuts after the bytes passed, so that their answer is lost', async () => {
    const client = await dialAndGreet();
    const cut = proxy.cutWhen('commit');
    client.socket.write(' com');
    await vi.waitFor(() => expect(received).toBe('hello com'));
    client.socket.write('mit');
    await cut;
    await vi.waitFor(() => expect(received).toBe('hello commit'));
    await vi.waitFor(() => expect(client.isOpen()).toBe(false));
    expect(client.answers()).not.toContain('mit');
    await dialAndGreet();
  });

  it('cuts before the bytes passed when they are not to arrive', async () => {
    const client = await dialAndGreet();
    const cut = proxy.cutWhen(Buffer.from('commit'), { deliver: false });
    client.socket.write('commit');
    await cut;
    await vi.waitFor(() => expect(client.isOpen()).toBe(false));
    await dialAndGreet();
    expect(received).toBe('hellohello');
  });
});
