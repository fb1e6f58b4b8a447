import { resetWatermark } from '../../store/due.ts';
import type { Pool } from '../../store/pool.ts';

/**
 * Has every wake-up within the horizon published again, after a purge or the loss of the broker.
 *
 * A feeder at work notices and begins anew with its next pass.
 */
export function refeed(pool: Pool): Promise<void> {
  return resetWatermark(pool);
}
