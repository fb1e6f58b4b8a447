import type { Bundle, BundledDelivery, Receipt } from './bundle.ts';
import { instant } from './instants.ts';

/** What the receiver's own record, which was attached to a bundle, says of a delivery. */
export function attachedReceipts(bundle: Bundle, bundled: BundledDelivery): string[] {
  return bundle.receipts
    .filter((r) => r.idempotency_key === bundled.delivery.idempotency_key)
    .flatMap((r) => [sentence(r), ...order(r, bundled)]);
}

function sentence({ effects, effect_at, body_sha256 }: Receipt): string {
  if (effects === 0) return `The receiver's record knows the key and says that it took no effect.`;
  const when = effect_at === null ? '' : `, at ${effect_at}`;
  return `The receiver's record says that the key took effect once${when}${body_sha256 === null ? '' : ', for these bytes'}.`;
}

/** An effect before the first answer that says so is worth a question: a lost answer, or clocks that differ. */
function order({ effects, effect_at }: Receipt, { attempts }: BundledDelivery): string[] {
  const at = effect_at === null ? Number.NaN : Date.parse(effect_at);
  if (effects === 0 || Number.isNaN(at)) return [];
  const startOf = (a: (typeof attempts)[number]): string => a.started_at ?? a.claimed_at;
  const [first] = attempts;
  if (first === undefined || at < Date.parse(startOf(first)))
    return ['That is before any attempt began: the clocks differ, or the record is of something else.'];
  const accepted = attempts.find((a) => a.status !== null && a.status >= 200 && a.status < 300);
  if (accepted !== undefined && at >= Date.parse(startOf(accepted))) return [];
  return [
    accepted === undefined
      ? 'No attempt was answered with 2xx: an attempt had its effect and its answer said otherwise or was lost, or the clocks differ.'
      : `That is before attempt ${accepted.attempt} of ${instant(startOf(accepted))}, the first that was answered with 2xx: an earlier one had the effect and its answer said otherwise or was lost, or the clocks differ.`,
  ];
}
