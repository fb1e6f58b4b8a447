/** Every state of a delivery; the last three are final. */
export const STATES = ['due', 'in_flight', 'held', 'delivered', 'dead_lettered', 'cancelled'] as const;
export type State = (typeof STATES)[number];

export const FINAL_STATES = ['delivered', 'dead_lettered', 'cancelled'] as const satisfies readonly State[];

export function isState(text: string): text is State {
  return (STATES as readonly string[]).includes(text);
}

export function isFinal(state: State): boolean {
  return (FINAL_STATES as readonly State[]).includes(state);
}

/**
 * The one table that says which state follows which, and on what.
 *
 * Moves that no attempt makes take their guards from it (store/moves.ts). The statements that claim and settle decide by
 * more than the state, and write states out. The database refuses any move that is not in it, whoever asks
 * (migrations/0004_deliveries.sql); a test proves the two equal.
 */
export const TRANSITIONS = {
  claim: { from: ['due'], to: 'in_flight' },
  deliver: { from: ['in_flight'], to: 'delivered' },
  retry: { from: ['in_flight'], to: 'due' },
  give_up: { from: ['in_flight'], to: 'dead_lettered' },
  /** The claim expired, or its holder gave it back: nobody knows whether the endpoint has processed it. */
  lapse: { from: ['in_flight'], to: 'due' },
  /** A retry or lapse whose endpoint was paused or disabled meanwhile. */
  hold_after_attempt: { from: ['in_flight'], to: 'held' },
  /** A 2xx that came after its claim had lapsed: the effect is there. */
  deliver_late: { from: ['due', 'held', 'in_flight'], to: 'delivered' },
  miss: { from: ['due', 'held'], to: 'dead_lettered' },
  hold: { from: ['due'], to: 'held' },
  release: { from: ['held'], to: 'due' },
  /** The endpoint is gone for good (410, deleted): what waited for it ends. */
  abandon: { from: ['due', 'held'], to: 'dead_lettered' },
  cancel: { from: ['due', 'held'], to: 'cancelled' },
  replay: { from: ['dead_lettered', 'cancelled'], to: 'due' },
  /** A replay towards an endpoint that is paused. */
  replay_held: { from: ['dead_lettered', 'cancelled'], to: 'held' },
} as const satisfies Record<string, { from: readonly State[]; to: State }>;

export type Transition = keyof typeof TRANSITIONS;

/** The states from which a transition may start, as the store's guard. */
export function fromStates(transition: Transition): readonly State[] {
  return TRANSITIONS[transition].from;
}
