import { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { PublishError } from '../../src/broker/outgoing.ts';
import { openLog, scrub } from '../../src/runtime/log.ts';

type Format = 'json' | 'human';

/** A stream that shows what was handed to it before the call returned. */
function openMemory(): Writable & { text: () => string } {
  let text = '';
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      text += String(chunk);
      done();
    },
  });
  return Object.assign(stream, { text: () => text });
}

function linesOf(format: Format, tell: (log: ReturnType<typeof openLog>) => void): string[] {
  const stream = openMemory();
  tell(openLog({ level: 'info', format }, stream));
  const lines = stream.text().split('\n');
  expect(lines.pop()).toBe('');
  return lines;
}

function jsonOf(tell: (log: ReturnType<typeof openLog>) => void): Record<string, unknown>[] {
  return linesOf('json', tell).map((line) => JSON.parse(line) as Record<string, unknown>);
}

const FORGED = '\r\n{"level":"info","event":"forged"}\u0085\u001b[2J\u2028\u2029\u007f\u009b31m\u202e';
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202e]/u;

describe('the log', () => {
  it('writes one object per event, with time, level and fields', () => {
    const [line] = jsonOf((log) =>
      log.warn('delivery.late', { attempt: 2, ids: ['a', 'b'], none: undefined, no: null }),
    );
    expect(line).toEqual({
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      level: 'warn',
      event: 'delivery.late',
      attempt: 2,
      ids: ['a', 'b'],
      no: null,
    });
  });

  it('writes for people as well', () => {
    const [line] = linesOf('human', (log) =>
      log.info('attempt', { id: 'dlv_1', ms: 12, text: 'two words', ok: true }),
    );
    expect(line?.slice(25)).toBe('info  attempt id=dlv_1 ms=12 text="two words" ok=true');
  });

  it('leaves out what is less severe than its level', () => {
    const events = jsonOf((log) => {
      for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level](level);
    }).map(({ event }) => event);
    expect(events).toEqual(['info', 'warn', 'error']);
  });

  it('gives children fields that every line carries, which a line may override', () => {
    const lines = jsonOf((log) => {
      const child = log.child({ role: 'worker', lane: 1 }).child({ lane: 2 });
      child.info('a');
      child.fault('b', new Error('x'), { lane: 3 });
    });
    expect(lines).toMatchObject([
      { event: 'a', role: 'worker', lane: 2 },
      { event: 'b', role: 'worker', lane: 3, error: { message: 'x' } },
    ]);
  });

  it('has handed a line over when the call returns, so that an exit loses nothing of it', () => {
    const stream = openMemory();
    const log = openLog({ level: 'info', format: 'json' }, stream);
    for (let index = 0; index < 1_000; index += 1) log.info('line', { index });
    log.fault('fatal', new Error('the reason'));
    expect(stream.text().split('\n')).toHaveLength(1_002);
    expect(stream.text()).toContain('the reason');
  });

  it('is flushed when a slow reader has taken everything', async () => {
    let taken = '';
    const stream = new Writable({
      highWaterMark: 1,
      write: (chunk, _encoding, done) => {
        setImmediate(() => {
          taken += String(chunk);
          done();
        });
      },
    });
    const log = openLog({ level: 'info', format: 'json' }, stream);
    for (let index = 0; index < 50; index += 1) log.info('line', { index });
    await log.flush();
    expect(taken.split('\n')).toHaveLength(51);
  });

  it('gives up flushing after two seconds when nobody reads', async () => {
    vi.useFakeTimers();
    try {
      const log = openLog({ level: 'info', format: 'json' }, new Writable({ write: () => undefined }));
      log.info('a');
      const flushed = log.flush();
      await vi.advanceTimersByTimeAsync(2_000);
      await expect(flushed).resolves.toBeUndefined();
    } finally {
      vi.useRealTimers();
    }
  });

  it('survives a reader that has gone away', async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('write EPIPE')) });
    const log = openLog({ level: 'info', format: 'json' }, stream);
    log.info('a');
    log.info('b');
    await expect(log.flush()).resolves.toBeUndefined();
  });
});

describe('errors in the log', () => {
  it('show message, code, stack and every cause', () => {
    const root = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const error = new Error('cannot claim', { cause: new AggregateError([root, 'text'], 'all failed') });
    const [line] = jsonOf((log) => log.fault('claim.failed', error));
    expect(line).toMatchObject({
      level: 'error',
      error: {
        name: 'Error',
        message: 'cannot claim',
        stack: expect.stringContaining('log.test.ts'),
        cause: {
          name: 'AggregateError',
          message: 'all failed',
          errors: [{ message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' }, 'text'],
        },
      },
    });
  });

  it('are a warning with its reason in a line, and no stack, when a server is away', () => {
    const outages = [
      Object.assign(
        new AggregateError([new Error('connect ECONNREFUSED ::1:1'), new Error('and 127.0.0.1:1')]),
        {
          code: 'ECONNREFUSED',
        },
      ),
      Object.assign(new Error('the database system is starting up'), { code: '57P03' }),
      new Error('Connection terminated unexpectedly'),
      new Error('timeout exceeded when trying to connect'),
      new PublishError('not_connected', 'the broker is not connected'),
      new Error('Channel closed by server: 404 (NOT-FOUND) with message "NOT_FOUND - no queue"'),
      new Error('Heartbeat timeout'),
    ];
    const lines = jsonOf((log) => {
      for (const error of outages) log.fault('feed_failed', error, { n: 1 });
    });
    expect(lines).toEqual(
      outages.map((error) => ({
        at: expect.anything(),
        level: 'warn',
        event: 'feed_failed',
        n: 1,
        reason: error.message || 'connect ECONNREFUSED ::1:1; and 127.0.0.1:1',
      })),
    );
  });

  it('are told even when they are no errors', () => {
    const lines = jsonOf((log) => {
      for (const thrown of ['text', undefined, null, 7n, { code: 1 }]) log.fault('odd', thrown);
    });
    expect(lines.map(({ error }) => error)).toEqual(['text', undefined, null, '7', { code: 1 }]);
  });

  it('show nothing of what libraries hang on them', () => {
    const error = Object.assign(new Error('x'), { config: { headers: { a: 'canary' } }, request: 'canary' });
    expect(JSON.stringify(jsonOf((log) => log.fault('call', error)))).not.toContain('canary');
  });
});

describe('text from outside', () => {
  it.each<Format>(['json', 'human'])('cannot forge a line or move a cursor (%s)', (format) => {
    const error = Object.assign(new TypeError(`Header "${FORGED}" is invalid`), { code: FORGED });
    error.stack = `TypeError: ${FORGED}\n    at x`;
    const lines = linesOf(format, (log) => {
      log.info(`event${FORGED}`, {
        routingKey: FORGED,
        [`name${FORGED}`]: 1,
        deep: { list: [FORGED, { [FORGED]: FORGED }] },
      });
      log.child({ endpoint: FORGED }).fault('failed', error, { reason: FORGED });
    });
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line).not.toMatch(UNPRINTABLE);
  });

  it('is the same text again for who reads the JSON', () => {
    expect(jsonOf((log) => log.info('a', { text: FORGED }))[0]?.['text']).toBe(FORGED);
  });

  it('cannot take the place of time, level or event, nor of the prototype', () => {
    const fields = JSON.parse(
      '{"level":"debug","event":"forged","at":"never","__proto__":{"polluted":1},"7":"seven"}',
    ) as object;
    const [line] = linesOf('json', (log) => log.info('real', { ...fields }));
    expect(line).toMatch(/^\{"at":"2[^"]+","level":"info","event":"real",/);
    expect(JSON.parse(line ?? '')).toMatchObject({
      event_: 'forged',
      level_: 'debug',
      at_: 'never',
      7: 'seven',
    });
  });

  it('is one line of valid JSON whatever it is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.object({ withBigInt: true, withDate: true, withMap: true }),
        (event, fields) => {
          const lines = linesOf('json', (log) => log.info(event, fields));
          expect(lines).toHaveLength(1);
          expect(lines[0]).not.toMatch(UNPRINTABLE);
          JSON.parse(lines[0] ?? '');
          expect(linesOf('human', (log) => log.info(event, fields))).toHaveLength(1);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('odd values', () => {
  it('never throw and never swell', () => {
    const cycle: Record<string, unknown> = { name: 'cycle' };
    cycle['self'] = cycle;
    const hostile = Object.defineProperty({}, 'x', {
      enumerable: true,
      get: () => {
        throw new Error('no');
      },
    });
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const [line] = jsonOf((log) =>
      log.info('odd', {
        big: 12345678901234567890n,
        nan: Number.NaN,
        date: new Date(0),
        noDate: new Date(Number.NaN),
        bytes: Buffer.from('canary'),
        cycle,
        hostile,
        revoked: revoked.proxy,
        set: new Set([1]),
        map: new Map([['a', 1]]),
        fn: () => 1,
        symbol: Symbol('s'),
        long: 'x'.repeat(100_000),
        many: Array.from({ length: 10_000 }, (_, index) => index),
        deep: JSON.parse(`${'['.repeat(50)}${']'.repeat(50)}`) as unknown,
      }),
    );
    expect(line).toMatchObject({
      big: '12345678901234567890',
      nan: 'NaN',
      date: '1970-01-01T00:00:00.000Z',
      noDate: '[invalid date]',
      bytes: '[6 bytes]',
      cycle: { name: 'cycle', self: '[circular]' },
      hostile: { x: '[unreadable]' },
      revoked: '[unreadable]',
      set: [1],
      map: { a: 1 },
      fn: '[function]',
      symbol: 'Symbol(s)',
    });
    expect(JSON.stringify(line).length).toBeLessThan(10_000);
  });
});

describe('secrets', () => {
  it('of URLs, of endpoints and under telling names are never in the log', () => {
    const url = 'amqp://canary:canary@broker:5672/vhost?password=canary#canary';
    const error = new Error(`cannot connect to ${url}`, {
      cause: new Error(`raw p@ss: postgres://u:c@nary/ca?nary@db/x`),
    });
    for (const format of ['json', 'human'] as const) {
      const text = linesOf(format, (log) => {
        log.fault(`failed ${url}`, error, { url, link: new URL(url), [url]: 1 });
        log.info('endpoint', {
          body: 'whsec_Y2FuYXJ5Y2FuYXJ5',
          secret: 'canary',
          headers: { Authorization: 'Bearer canary', 'set-cookie': 'canary' },
        });
        log.info('key', {
          masterKey: Buffer.from('canary'),
          apiToken: 'canary',
          DUEPOST_MASTER_KEY: 'canary',
        });
      }).join('\n');
      expect(text).not.toMatch(/canary|Y2Fu|c@nary|ca\?nary/);
      expect(text).toContain('amqp://***@broker:5672/vhost?***');
      expect(text).toContain('whsec_***');
    }
  });
});

describe('scrub', () => {
  it.each([
    ['plain text', 'plain text'],
    ['see https://a.example/hook?token=x and http://b/', 'see https://a.example/hook?*** and http://b/'],
    ['amqp://u:p@s?s#w%rd/é$@h/v', 'amqp://***@h/v'],
    ['(https://u:p@h/a)', '(https://***@h/a)'],
    ['a\tb\r\n\u001b[31mc\u0085\u2028', 'a\\u0009b\\u000d\\u000a\\u001b[31mc\\u0085\\u2028'],
    ['Grüße 👋', 'Grüße 👋'],
  ])('turns %j into %j', (text, expected) => {
    expect(scrub(text)).toBe(expected);
  });
});
