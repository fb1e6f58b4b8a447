import type { Answer, Call } from '../../egress/send.ts';

/** The sink of shadow mode: nothing leaves; what would have been sent is in the attempt's trail entry. */
export function recordInsteadOfSending(_call: Call): Promise<Answer> {
  return Promise.resolve({
    sent: false,
    status: 200,
    detail: 'shadow mode: nothing was sent',
    durationMs: 0,
  });
}
