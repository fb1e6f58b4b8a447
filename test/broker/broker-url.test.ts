import { describe, expect, it } from 'vitest';
import { parseBrokerUrl } from '../../src/broker/broker-url.ts';
import { connectPublisher } from '../../src/broker/publisher.ts';
import { targetOf, testBrokerConfig } from '../support/broker.ts';
import { startProxy } from '../support/proxy.ts';
import { recordLog } from '../support/recorded-log.ts';

const PASSWORD = 'p@s?s#w%rd/é$';

describe('the broker URL', () => {
  it.each([
    [
      'amqp://127.0.0.1',
      {
        protocol: 'amqp',
        hostname: '127.0.0.1',
        port: 5672,
        username: 'guest',
        password: 'guest',
        vhost: '/',
      },
    ],
    [
      'amqps://u:p@broker.example',
      { protocol: 'amqps', hostname: 'broker.example', port: 5671, username: 'u', password: 'p', vhost: '/' },
    ],
    ['amqp://u:p@h:5673/', { port: 5673, vhost: '/' }],
    ['amqp://u:p@h//', { vhost: '/' }],
    ['amqp://u:p@h/%2f', { vhost: '/' }],
    ['amqp://u:p@h/my%2Fvhost', { vhost: 'my/vhost' }],
    ['amqp://u:p@h/my/vhost', { vhost: 'my/vhost' }],
    ['amqp://u:p@[::1]:5672/x', { hostname: '::1', vhost: 'x' }],
    [
      `amqp://u:${encodeURIComponent(PASSWORD)}@h/x`,
      { username: 'u', password: PASSWORD, hostname: 'h', vhost: 'x' },
    ],
    ['amqp://u%40corp:%25@h', { username: 'u@corp', password: '%' }],
  ])('%s is understood', (text, expected) => {
    expect(parseBrokerUrl(text)).toMatchObject(expected);
  });

  it.each([
    `amqp://u:${PASSWORD}@h/x`,
    'amqp://u:p@ss@h',
    'amqp://u:p?ss@h',
    'amqp://u:p#ss@h',
    'amqp://u:pa/ss@h',
    'amqp://u:50%@h',
  ])('%s is refused with the remedy and without repeating it', (text) => {
    const read = (): unknown => parseBrokerUrl(text);
    expect(read).toThrow(/percent-encode/);
    expect(read).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(text.slice(9, 12)) }),
    );
  });

  it('must be an AMQP URL', () => {
    expect(() => parseBrokerUrl('http://127.0.0.1')).toThrow(/amqp:\/\//);
    expect(() => parseBrokerUrl('127.0.0.1:5672')).toThrow(Error);
  });
});

describe('a password with special characters', () => {
  it('reaches the broker byte by byte, and no message repeats it when it is refused', async () => {
    const own = testBrokerConfig();
    const proxy = await startProxy(targetOf(own));
    const sent: Buffer[] = [];
    proxy.onClientData((chunk) => sent.push(chunk));
    const { log, lines } = recordLog();
    const url = `amqp://nobody:${encodeURIComponent(PASSWORD)}@127.0.0.1:${proxy.port}/`;

    const failure: unknown = await connectPublisher({ ...own, url }, log).catch((error: unknown) => error);

    expect(String(failure)).toMatch(/ACCESS_REFUSED|ACCESS-REFUSED/);
    expect(Buffer.concat(sent).includes(`\0nobody\0${PASSWORD}`)).toBe(true);
    const told = `${String(failure)} ${(failure as Error).stack} ${lines.map((line) => String(line.fields['error']) + JSON.stringify(line)).join()}`;
    expect(told).not.toContain(PASSWORD);
    expect(told).not.toContain(encodeURIComponent(PASSWORD));
    await proxy.close();
  });

  it('is no help for a virtual host that is not there: that is said at once', async () => {
    const config = testBrokerConfig();
    const url = new URL(config.url);
    url.pathname = '/no%2Fsuch';
    await expect(connectPublisher({ ...config, url: url.href }, recordLog().log)).rejects.toThrow(/no\/such/);
  });
});
