import { type PracticeCall, startPracticeReceiver } from '../../receiver/practice.ts';

/** What the receiver of a drill does to its calls. */
export interface Script {
  /** One for each call, the last one repeats; default 200. */
  readonly answers?: readonly number[];
  /** Sent as `Retry-After` with every answer that is no 2xx. */
  readonly retryAfterSeconds?: number;
  /** How long every call takes. */
  readonly delayMs?: number;
}

export type DrillCall = Pick<PracticeCall, 'key' | 'bodySha256' | 'verified' | 'answered'>;

/** What somebody's own service was given under one key, and what it said to that. */
export interface HandedOn {
  readonly key: string;
  readonly deliveryId: string | undefined;
  /** One for each call; undefined: it did not answer. */
  readonly answers: readonly (number | undefined)[];
  /** Different ones only. */
  readonly receipts: readonly string[];
}

/** The receiver behind a drill's endpoint. */
export interface DrillReceiver {
  readonly url: string;
  /** By whoever answers duepost. */
  calls(): readonly DrillCall[];
  /** How many business effects a key had, by the receiver's own record; undefined: only its owner can look there. */
  countEffects(key: string): number | undefined;
  /** Empty unless there is a service behind it. */
  handedOn(): readonly HandedOn[];
  setSecrets(secrets: readonly string[]): void;
  close(): Promise<void>;
}

/** A receiver of our own, whose ledger is the judge. */
export async function openPractice(script: Script): Promise<DrillReceiver> {
  const receiver = await startPracticeReceiver(script);
  return {
    ...receiver,
    countEffects: (key) => receiver.effects().filter((effect) => effect.key === key).length,
    handedOn: () => [],
  };
}
