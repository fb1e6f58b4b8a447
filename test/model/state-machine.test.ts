import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FINAL_STATES, type State, TRANSITIONS } from '../../src/domain/state.ts';
import type { Move } from '../../src/store/moves.ts';
import { findViolations } from '../fault/support/invariants.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import {
  advance,
  claim,
  hasten,
  type Model,
  type ModelDelivery,
  type ModelResult,
  move,
  reschedule,
  settle,
  shown,
} from './delivery-model.ts';
import { openWorld, TIMEOUT_MS, type World } from './store-world.ts';

let product: TestProduct;
const reached = new Set<string>();
/** Where each delivery was before the last step. */
const before = new WeakMap<ModelDelivery, State>();

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

/** Does the same to both, and compares their answers and then everything there is to see. */
class Command implements fc.AsyncCommand<Model, World> {
  readonly name: string;
  readonly act: (model: Model, world: World) => Promise<readonly [unknown, unknown]>;

  constructor(name: string, act: Command['act']) {
    this.name = name;
    this.act = act;
  }

  check(): boolean {
    return true;
  }

  async run(model: Model, world: World): Promise<void> {
    for (const d of model.deliveries) before.set(d, d.state);
    const [expected, answered] = await this.act(model, world);
    expect(answered).toEqual(expected);
    expect(await world.look()).toEqual(shown(model));
    for (const d of model.deliveries) reached.add(`${before.get(d)}>${d.state}`);
  }

  toString(): string {
    return this.name;
  }
}

const of = (model: Model, n: number): ModelDelivery => model.deliveries[n] as ModelDelivery;
const which = fc.nat(1);
const MOVES: readonly Move[] = ['miss', 'hold', 'release', 'abandon', 'cancel', 'replay', 'replay_held'];

const claims = fc
  .record({
    n: which,
    // Mostly for the attempt that comes next; now and then for one that was, or one that is far off.
    ahead: fc.constantFrom(1, 1, 1, 1, 0, -1, 3),
    holder: fc.constantFrom('one', 'other'),
    knows: fc.constantFrom(true, true, true, false),
  })
  .map(
    ({ n, ahead, holder, knows }) =>
      new Command(`claim ${n} ${ahead} ${holder} ${knows}`, async (model, world) => {
        const asked = { attempt: Math.max(1, of(model, n).attempt + ahead), holder, knows };
        return [claim(model, of(model, n), asked), await world.claim(n, asked)];
      }),
  );

const RESULTS: readonly Omit<ModelResult, 'attempt' | 'delayHours' | 'revision'>[] = [
  { decision: 'deliver', outcome: 'delivered', handedBack: false },
  { decision: 'retry', outcome: 'retryable', handedBack: false },
  { decision: 'retry', outcome: 'retryable', handedBack: false },
  { decision: 'give_up', outcome: 'terminal', handedBack: false, deadReason: 'terminal_response' },
  { decision: 'give_up', outcome: 'retryable', handedBack: false, deadReason: 'deadline_passed' },
  { decision: 'lapse', outcome: 'unknown', handedBack: false },
  { decision: 'lapse', outcome: 'unknown', handedBack: true },
  { decision: 'give_up', outcome: 'unknown', handedBack: false, deadReason: 'attempts_exhausted' },
];

const settlements = fc
  .record({
    n: which,
    result: fc.constantFrom(...RESULTS),
    // Mostly of the latest attempt; now and then of one that somebody else has given up.
    back: fc.constantFrom(0, 0, 0, 0, 1, 2),
    delayHours: fc.constantFrom(0, 2, 30),
    isOld: fc.boolean(),
  })
  .map(
    ({ n, result, back, delayHours, isOld }) =>
      new Command(
        `settle ${n} ${result.decision} ${result.outcome} ${result.handedBack} back ${back} after ${delayHours} old ${isOld}`,
        async (model, world) => {
          const { attempt, revision } = of(model, n);
          const full = {
            ...result,
            attempt: attempt - back,
            delayHours,
            revision: isOld ? revision - 1 : revision,
          };
          return [settle(model, of(model, n), full), await world.settle(n, full)];
        },
      ),
  );

const moves = fc
  .record({ n: which, by: fc.constantFrom(...MOVES) })
  .map(
    ({ n, by }) =>
      new Command(`${by} ${n}`, async (model, world) => [move(of(model, n), by), await world.move(n, by)]),
  );

const hastenings = which.map(
  (n) => new Command(`hasten ${n}`, async (model, world) => [hasten(of(model, n)), await world.hasten(n)]),
);

const reschedulings = fc
  .record({ dueIn: fc.constantFrom(-1, 3), deadlineIn: fc.constantFrom(5, 20) })
  .map(
    (to) =>
      new Command(`reschedule to ${to.dueIn}, deadline ${to.deadlineIn}`, async (model, world) => [
        reschedule(of(model, 0), to),
        await world.reschedule(0, to),
      ]),
  );

const statuses = fc.constantFrom('active' as const, 'active' as const, 'paused' as const).map(
  (status) =>
    new Command(`the endpoint is ${status}`, async (model, world) => {
      model.status = status;
      await world.setStatus(status);
      return [undefined, undefined];
    }),
);

const passages = fc.constantFrom(1, 2, 2, 4).map(
  (hours) =>
    new Command(`${hours} hours pass`, async (model, world) => {
      advance(model, hours);
      await world.advance(hours);
      return [undefined, undefined];
    }),
);

type Step = 'claim' | 'pass' | 'lapse' | 'retry' | 'hasten' | 'deliver' | 'paused' | 'active' | Move;

/** Things that seldom follow each other by chance. */
const STORIES: readonly (readonly Step[])[] = [
  ['claim', 'pass', 'lapse', 'deliver'],
  ['claim', 'pass', 'lapse', 'hold', 'deliver'],
  ['claim', 'pass', 'lapse', 'claim', 'deliver'],
  ['cancel', 'replay'],
  ['cancel', 'replay_held'],
  ['hold', 'abandon', 'replay', 'abandon', 'replay_held'],
  ['hold', 'cancel', 'replay'],
  ['hold', 'release'],
  ['claim', 'paused', 'pass', 'lapse', 'active', 'release'],
  ['claim', 'retry', 'hasten', 'claim', 'pass', 'lapse', 'cancel', 'replay'],
];

const stories = fc
  .record({ n: which, story: fc.constantFrom(...STORIES) })
  .map(({ n, story }) => tell(n, story));

const OUTCOMES = { lapse: 'unknown', retry: 'retryable', deliver: 'delivered' } as const;

function tell(n: number, story: readonly Step[]): Command {
  return new Command(`${story.join(', ')} ${n}`, async (model, world) => {
    const d = of(model, n);
    const first = d.attempt + 1;
    const expected: unknown[] = [];
    const answered: unknown[] = [];
    for (const step of story) {
      if (step === 'paused' || step === 'active') {
        model.status = step;
        await world.setStatus(step);
      } else if (step === 'pass') {
        advance(model, 2);
        await world.advance(2);
      } else if (step === 'claim') {
        const asked = { attempt: d.attempt + 1, holder: 'one', knows: true };
        expected.push(claim(model, d, asked));
        answered.push(await world.claim(n, asked));
      } else if (step === 'hasten') {
        expected.push(hasten(d));
        answered.push(await world.hasten(n));
      } else if (step === 'lapse' || step === 'retry' || step === 'deliver') {
        const result = {
          // A result may come after the attempt was given up and another one made.
          attempt: step === 'deliver' ? first : Math.max(first, d.attempt),
          decision: step,
          outcome: OUTCOMES[step],
          handedBack: false,
          delayHours: step === 'retry' ? 2 : 0,
        };
        expected.push(settle(model, d, { ...result, revision: d.revision }));
        answered.push(await world.settle(n, { ...result, revision: d.revision }));
      } else {
        expected.push(move(d, step));
        answered.push(await world.move(n, step));
      }
      reached.add(`${before.get(d) ?? 'due'}>${d.state}`);
      before.set(d, d.state);
    }
    return [expected, answered];
  });
}

const fresh = (deadlineIn: number | undefined): ModelDelivery => ({
  state: 'due',
  attempt: 0,
  cycle: 1,
  uncounted: 0,
  base: 0,
  revision: 1,
  dueIn: 0,
  scheduledIn: 0,
  deadlineIn,
  leaseIn: undefined,
  holder: undefined,
  deadReason: undefined,
  attempts: [],
  records: [],
  trail: ['schedule'],
});

/** Ends what is open, as workers would, so that the invariants can be asked about. */
async function endAll(model: Model, world: World): Promise<void> {
  for (const [n, d] of model.deliveries.entries()) {
    for (const [i, attempt] of d.attempts.entries()) {
      if (attempt.outcome !== undefined) continue;
      const attemptNumber = {
        attempt: i + 1,
        decision: 'retry',
        outcome: 'retryable',
        handedBack: false,
      } as const;
      const result = { ...attemptNumber, delayHours: 0, revision: d.revision };
      expect(await world.settle(n, result)).toBe(settle(model, d, result));
    }
    if (!(FINAL_STATES as readonly State[]).includes(d.state))
      expect(await world.move(n, 'cancel')).toBe(move(d, 'cancel'));
  }
  expect(await world.look()).toEqual(shown(model));
}

async function beginning(): Promise<{ model: Model; real: World }> {
  const model: Model = { status: 'active', failures: 0, deliveries: [fresh(10), fresh(undefined)] };
  return { model, real: await openWorld(product) };
}

test('the store does what the contract says, in whatever order it is asked', async () => {
  const commands = fc.commands(
    [
      claims,
      claims,
      settlements,
      settlements,
      settlements,
      stories,
      moves,
      hastenings,
      reschedulings,
      statuses,
      passages,
    ],
    { maxCommands: 40, size: 'max' },
  );
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const { model, real } = await beginning();
      await fc.asyncModelRun(() => ({ model, real }), sequence);
      await endAll(model, real);
    }),
    { numRuns: 80, interruptAfterTimeLimit: 80_000, markInterruptAsFailure: false },
  );
  // What chance may have left out.
  for (const story of STORIES) {
    const { model, real } = await beginning();
    await tell(1, story).run(model, real);
    await endAll(model, real);
  }
  const violations = await findViolations(product.parts.pool, { receivers: [], timeoutMs: TIMEOUT_MS });
  // There is no receiver here.
  expect(violations.filter((v) => !/had no effect$|more at the receivers$/.test(v))).toEqual([]);
  // It has been everywhere, or it would have shown nothing.
  const steps = Object.values(TRANSITIONS).flatMap(({ from, to }) => from.map((state) => `${state}>${to}`));
  expect([...new Set(steps)].filter((step) => !reached.has(step))).toEqual([]);
}, 180_000);
