import { type Drill, finding } from './drill.ts';
import { callsOf, countEarly, describeAnswer, judgeOutcome, judgeSameness } from './judge.ts';

/** The receiver answers 503 twice, then 200. */
export const unavailable: Drill = {
  name: 'unavailable',
  title: 'answer 503 twice, then 200',
  async run(stand) {
    await stand.ensureWorker();
    const target = await stand.openTarget('drill-unavailable', {
      answers: [503, 503, 200],
      policy: { kind: 'schedule', retry_schedule: [0, 1, 1], max_attempts: 5 },
    });
    const outcome = await stand.ended(await stand.publish(target));
    const calls = callsOf(target.receiver.calls(), outcome);
    return [
      finding('answers', '503, 503, 2xx', calls.map((call) => describeAnswer(call.answered)).join(', ')),
      finding(
        'attempts stored',
        '503, 503, 2xx',
        outcome.attempts.map((attempt) => describeAnswer(attempt.status)).join(', '),
      ),
      finding('attempts before their due time', 0, countEarly(outcome)),
      judgeSameness(target, outcome),
      ...judgeOutcome(target, outcome),
    ];
  },
};
