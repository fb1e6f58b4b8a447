/** Where a process can be told to die, in the order in which a delivery passes them. */
export const KILL_POINTS = [
  /** Planned, nothing written. */
  'accept.planned',
  /** The rows are there, nobody was told. */
  'accept.committed',
  /** A wake-up was handed to the driver; it may or may not have left. */
  'announce.started',
  'announce.confirmed',
  /** The claim is there, no call was made. */
  'claim.committed',
  /** The call is under way; its bytes may or may not have left. */
  'call.started',
  /** The answer is known to this process alone. */
  'call.answered',
  /** The outcome is there, the wake-up is not acknowledged. */
  'settle.committed',
  /** The same, at the very last step before the acknowledgement; of commands as well as of wake-ups. */
  'ack.due',
  'ack.sent',
  /** A page was published, the watermark has not moved. */
  'feed.confirmed',
  'reconcile.confirmed',
  /** Notices were published, they are still there to be published. */
  'notify.confirmed',
  /** New timing is written, nothing is committed. */
  'reschedule.written',
  /** New timing is there, nobody was told. */
  'reschedule.committed',
  /** A new cycle has begun, nobody was told. */
  'replay.committed',
] as const;

export type KillPoint = (typeof KILL_POINTS)[number];

/** A point by its name, or its n-th passing as `name:n`. */
export const KILL_POINT_FORM: RegExp = new RegExp(
  `^(${KILL_POINTS.map((name) => name.replace('.', '\\.')).join('|')})(:[1-9]\\d{0,6})?$`,
);

let armedAt: KillPoint | undefined;
let passesLeft = 0;

/**
 * Arms a point for drills and fault tests: the process dies there as by `kill -9`, with nothing cleaned up.
 *
 * The configuration refuses it outside of development and test.
 *
 * @param setting  `name` or `name:count`; undefined disarms
 */
export function armKillPoint(setting: string | undefined): void {
  const [name, count] = setting?.split(':') ?? [];
  armedAt = KILL_POINTS.find((point) => point === name);
  passesLeft = Number(count ?? 1);
}

/** Does nothing, unless this very point was armed when the process started. */
export function killPoint(name: KillPoint): void {
  if (armedAt !== name) return;
  passesLeft -= 1;
  if (passesLeft === 0) process.kill(process.pid, 'SIGKILL');
}
