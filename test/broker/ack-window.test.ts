import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AckWindow, createAckWindow } from '../../src/broker/ack-window.ts';

/** What the broker does: a tag it does not know any more, even the one of "up to", costs the channel. */
function acknowledge(unacked: Set<number>, { upTo, singly }: ReturnType<AckWindow['take']>): number {
  for (const tag of upTo === undefined ? singly : [...singly, upTo]) {
    if (!unacked.has(tag)) throw new Error(`unknown delivery tag ${tag}`);
  }
  for (const tag of singly) unacked.delete(tag);
  if (upTo !== undefined) for (const tag of unacked) if (tag <= upTo) unacked.delete(tag);
  return singly.length + (upTo === undefined ? 0 : 1);
}

describe('the window of acks', () => {
  it('acknowledges everything done in order at once', () => {
    const window = createAckWindow();
    for (const tag of [2, 1, 4, 3]) window.settle(tag);
    expect(window.take()).toEqual({ upTo: 4, singly: [] });
    expect(window.take()).toEqual({ upTo: undefined, singly: [] });
  });

  it('acknowledges one by one what is done behind a straggler, and never the straggler', () => {
    const window = createAckWindow();
    for (const tag of [1, 3, 4]) window.settle(tag);
    expect(window.take()).toEqual({ upTo: 1, singly: [3, 4] });
    window.settle(2);
    expect(window.take()).toEqual({ upTo: 2, singly: [] });
  });

  it('never acknowledges what is open or given back, nor a tag the broker no longer knows', () => {
    const step = fc.record({ pick: fc.nat(), isFault: fc.boolean(), takes: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const window = createAckWindow();
        const unacked = new Set(steps.map((_, index) => index + 1));
        const open = [...unacked];
        const settled = new Set<number>();
        for (const { pick, isFault, takes } of steps) {
          const [tag] = open.splice(pick % open.length, 1) as [number];
          if (isFault) unacked.delete(tag);
          if (isFault) window.skip(tag);
          else window.settle(tag);
          settled.add(tag);
          if (takes) acknowledge(unacked, window.take());
          for (const still of open) expect(unacked.has(still)).toBe(true);
        }
        acknowledge(unacked, window.take());
        expect(unacked.size).toBe(0);
      }),
    );
  });
});
