// No queue at all: as many calls as one process can make.

import { bodyOf, createCaller } from '../call.mjs';
import { answerQuestions } from '../child.mjs';

const CONCURRENT = 128;
let caller;

answerQuestions({
  async prepare(options) {
    caller = await createCaller(options);
    return {};
  },
  async start({ count }) {
    let next = 0;
    await Promise.all(
      Array.from({ length: CONCURRENT }, async () => {
        while (next < count) {
          const number = next++;
          await caller.call(`k${number}`, `msg_${number}`, bodyOf(number));
        }
      }),
    );
    return {};
  },
  check: () => ({}),
  close: () => caller?.close(),
});
