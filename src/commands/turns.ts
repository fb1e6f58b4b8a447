import { SetAsideFullError } from '../broker/outgoing.ts';

/** Does work when its turn has come; a subject that is undefined has no turns: its work is done at once. */
export type TakeTurn = (subject: string | undefined, work: () => Promise<void>) => Promise<void>;

/**
 * Work about one subject is done one after the other, in the order it was asked for; all else at once.
 *
 * Rejects as the work does. After a fault what waits behind it rejects with the same, undone: the command that met it
 * comes again, and what was to follow must not be there first. One that is refused, and only finds no room where it is
 * set aside, has had its turn.
 */
export function createTurns(): TakeTurn {
  const latest = new Map<string, Promise<void>>();
  return (subject, work) => {
    if (subject === undefined) return work();
    const turn = latest.get(subject)?.then(work, (fault: unknown) => afterFault(fault, work)) ?? work();
    latest.set(subject, turn);
    const leave = (): void => {
      if (latest.get(subject) === turn) latest.delete(subject);
    };
    void turn.then(leave, leave);
    return turn;
  };
}

function afterFault(fault: unknown, work: () => Promise<void>): Promise<void> {
  if (fault instanceof SetAsideFullError) return work();
  throw fault;
}
