import type { LookupAddress } from 'node:dns';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAddressGuard } from '../../src/egress/address-guard.ts';
import { type Egress, type EgressConfig, openEgress } from '../../src/egress/open.ts';
import type { Answer } from '../../src/egress/send.ts';
import { closePeers, openPeer, openRawPeer, respond, response } from './peers.ts';

/** What names resolve to, one list for each look-up; the last stays. A real resolver can't be made to lie offline. */
const zone = new Map<string, (string | Error)[][]>();
const asked: string[] = [];

vi.mock('node:dns', async (importOriginal) => {
  const original = await importOriginal<typeof import('node:dns')>();
  function lookup(
    host: string,
    _options: object,
    callback: (error: Error | null, addresses: LookupAddress[]) => void,
  ): void {
    asked.push(host);
    const answers = zone.get(host);
    const answer = (answers !== undefined && answers.length > 1 ? answers.shift() : answers?.[0]) ?? [];
    const [first] = answer;
    setImmediate(() => {
      if (first === undefined) {
        const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), {
          code: 'ENOTFOUND',
          syscall: 'getaddrinfo',
        });
        callback(error, []);
      } else
        callback(
          null,
          answer.map((address) => ({
            address: String(address),
            family: String(address).includes(':') ? 6 : 4,
          })),
        );
    });
  }
  return { ...original, default: { ...original, lookup }, lookup };
});

const OK = response('200 OK', [], 'ok');

describe('which addresses may be called', () => {
  const guard = createAddressGuard([]);

  it.each(
    words(`
      0.0.0.0 0.1.2.3 10.0.0.5 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16
      169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.31.196.1 192.52.193.1
      192.88.99.1 192.168.1.1 192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
      239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.5
      ::ffff:a9fe:a9fe ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::1
      64:ff9b:1::8.8.8.8 100::1 100:0:0:1::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1
      2001:3::1 2001:4:112::1 2001:10::1 2001:20::1 2001:30::1 2001:db8::1 2002:7f00:1::1 2002:808:808::1
      2620:4f:8000::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 4000::1
      localhost 1.2.3 0x7f.1 8.8.8.8/32 [::1]
    `),
  )('not %s', (address) => {
    expect(guard.verdict(address)).toBeUndefined();
    expect(guard.isAllowed(address)).toBe(false);
  });

  it.each(
    words(`
      1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.1.1.1 128.0.0.1 168.63.129.17
      172.15.1.1 172.32.0.1 192.0.1.1 198.17.1.1 198.20.0.1 223.255.255.255 ::ffff:8.8.8.8
      64:ff9b::8.8.8.8 2001:4860:4860::8888 2606:4700::1111 2a00:1450::1 2001:200::1
    `),
  )('but %s', (address) => {
    expect(guard.verdict(address)).toBe('public');
  });

  it('lists what the operator allows, whatever carries it, and nothing beside it', () => {
    const allowing = createAddressGuard(['127.0.0.0/8', '10.1.0.0/16', '192.168.7.7', 'fd00:1::/32', '::1']);
    for (const address of [
      '127.0.0.1',
      '::ffff:127.9.9.9',
      '64:ff9b::10.1.2.3',
      '192.168.7.7',
      'fd00:1::5',
      '::1',
    ]) {
      expect(allowing.verdict(address), address).toBe('listed');
    }
    for (const address of ['10.2.0.1', '192.168.7.8', 'fd00:2::5', '169.254.169.254', '::2']) {
      expect(allowing.verdict(address), address).toBeUndefined();
    }
    expect(allowing.verdict('8.8.8.8')).toBe('public');
  });

  it.each(['', 'localhost', '10.0.0.0/33', '127.1', '010.0.0.0/8', '10.0.0/x', '300.1.1.1'])(
    'refuses %j as an allowed range',
    (range) => {
      expect(() => createAddressGuard([range])).toThrow(`not an address range: ${JSON.stringify(range)}`);
    },
  );
});

describe.each(['node-fetch', 'undici'] as const)('the guard on %s', (client) => {
  const opened: Egress[] = [];
  const logged: unknown[] = [];

  function open(config: Partial<EgressConfig> = {}): (url: string) => Promise<Answer> {
    const log = { info: (event: string, fields?: object) => void logged.push({ event, ...fields }) };
    const egress = openEgress({ client, allow: [], allowHttp: true, ...config }, log);
    opened.push(egress);
    return (url) => egress.send({ url, headers: {}, body: Buffer.from('{}'), timeoutMs: 5_000 });
  }

  beforeEach(() => {
    zone.clear();
    asked.length = 0;
    logged.length = 0;
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    for (const egress of opened.splice(0)) await egress.close();
    await closePeers();
  });

  it.each(
    words(`
      127.0.0.1 2130706433 0177.0.0.1 0x7f.1 127.1 0 ①②⑦.⓪.⓪.① %31%32%37.0.0.1 [::1] [::ffff:127.0.0.1]
      [64:ff9b::7f00:1] localhost LOCALHOST. a.localhost
    `),
  )('opens no connection to %s', async (host) => {
    const peer = await openPeer(respond(OK));
    const answer = await open()(`http://${host}:${peer.port}/hook`);
    expect(answer).toMatchObject({ sent: false, error: 'address_not_allowed' });
    expect(peer.connections.length).toBe(0);
    expect(asked).toEqual([]);
  });

  it.each([['10.1.2.3'], ['169.254.169.254'], ['127.0.0.1'], ['::1'], ['::ffff:127.0.0.1'], ['fe80::1%lo']])(
    'opens no connection to a name that resolves to %s',
    async (address) => {
      const peer = await openPeer(respond(OK));
      zone.set('inward.test', [[address]]);
      const answer = await open()(`http://inward.test:${peer.port}/T0/SECRETPATH`);
      expect(answer).toMatchObject({ sent: false, error: 'address_not_allowed' });
      expect(answer.detail).toContain('inward.test');
      expect(answer.detail).not.toContain('SECRET');
      expect(peer.connections.length).toBe(0);
    },
  );

  it('connects only to those addresses of a name that are allowed', async () => {
    const peer = await openPeer(respond(OK));
    zone.set('mixed.test', [['10.1.2.3', '169.254.169.254', '127.0.0.1', '::1']]);
    const answer = await open({ allow: ['127.0.0.1'] })(`http://mixed.test:${peer.port}/`);
    expect(answer).toMatchObject({ status: 200, remoteAddress: '127.0.0.1' });
  });

  it('connects to the address that was judged, and judges again at the next connection', async () => {
    const peer = await openPeer((socket) => socket.end(response('200 OK', ['Connection: close'], 'ok')));
    zone.set('rebind.test', [['127.0.0.1'], ['127.0.0.2']]);
    const send = open({ allow: ['127.0.0.1/32'] });
    expect(await send(`http://rebind.test:${peer.port}/`)).toMatchObject({ status: 200 });
    expect(asked).toEqual(['rebind.test']);
    expect(await send(`http://rebind.test:${peer.port}/`)).toMatchObject({
      sent: false,
      error: 'address_not_allowed',
    });
    expect(peer.connections.length).toBe(1);
  });

  it('goes on to the next address when one refuses', async () => {
    const peer = await openPeer(respond(OK));
    zone.set('dual.test', [['::1', '127.0.0.3', '127.0.0.1']]);
    const answer = await open({ allow: ['127.0.0.0/8', '::1'] })(`http://dual.test:${peer.port}/`);
    expect(answer).toMatchObject({ status: 200, remoteAddress: '127.0.0.1' });
  });

  it('says that a name does not resolve', async () => {
    const answer = await open()('https://gone.test/SECRETPATH');
    expect(answer).toMatchObject({ sent: false, error: 'dns_failure' });
    expect(answer.detail).toContain('ENOTFOUND');
    expect(answer.detail).not.toContain('SECRET');
  });

  it('asks once for a name that many calls wait for', async () => {
    const peer = await openPeer(respond(OK));
    zone.set('busy.test', [['127.0.0.1']]);
    const send = open({ allow: ['127.0.0.0/8'] });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => send(`http://busy.test:${peer.port}/`)),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(asked).toEqual(['busy.test']);
  });

  it('logs once that an address is called because the operator allowed it', async () => {
    const peer = await openPeer(respond(response('200 OK', ['Connection: close'])));
    const send = open({ allow: ['127.0.0.0/8'] });
    await send(peer.url);
    await send(peer.url);
    expect(logged).toEqual([{ event: 'egress.listed_address', address: '127.0.0.1' }]);
  });

  it.each([
    { HTTPS_PROXY: 'P', HTTP_PROXY: 'P' },
    { ALL_PROXY: 'P', NO_PROXY: '*' },
    { http_proxy: 'P', https_proxy: 'P', all_proxy: 'P' },
  ])('uses no proxy of the environment (%j)', async (environment) => {
    const proxy = await openRawPeer((socket) =>
      socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\n')),
    );
    const peer = await openPeer(respond(OK));
    for (const [name, value] of Object.entries(environment)) {
      vi.stubEnv(name, value === 'P' ? `http://127.0.0.1:${proxy.port}` : value);
    }
    zone.set('inward.test', [['10.1.2.3']]);
    expect(await open()('http://inward.test/')).toMatchObject({ sent: false, error: 'address_not_allowed' });
    expect(await open({ allow: ['127.0.0.1'] })(peer.url)).toMatchObject({
      status: 200,
      responseExcerpt: 'ok',
    });
    expect(peer.requests.length).toBe(1);
  });

  it.each([
    ['http://h.example/', 'url_not_allowed'],
    ['https://user@h.example/', 'url_not_allowed'],
    ['ftp://h.example/', 'url_not_allowed'],
    ['nonsense', 'url_not_allowed'],
    ['https://10.0.0.5/', 'address_not_allowed'],
    ['https://[::1]/', 'address_not_allowed'],
  ])('does not call %s, should it stand in a row', async (url, error) => {
    expect(await open({ allowHttp: false })(url)).toMatchObject({ sent: false, error });
    expect(asked).toEqual([]);
  });
});

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
