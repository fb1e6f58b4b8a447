import { errors } from 'undici';
import { expect, test } from 'vitest';
import type { Line } from '../../src/egress/connect.ts';
import { classifyFailure } from '../../src/egress/failure.ts';

const READY = { stage: 'ready' } as Line;

test.each([new errors.ClientDestroyedError(), new errors.ClientClosedError()])(
  'a call on a connection that this side had closed is no fault of the endpoint: %s',
  (error) => {
    expect(classifyFailure(error, READY)).toBeUndefined();
  },
);
