import type { DueProof } from './calendars.ts';
import type { DueStep } from './due.ts';

/** One reason why a time that is computed anew differs from the stored one. */
export interface DriftCause {
  readonly cause:
    | 'time_zone_data'
    | 'time_zone'
    | 'day_closed'
    | 'day_open'
    | 'opening_hours'
    | 'day_count'
    | 'deadline'
    | 'unknown';
  /** As a person would tell it. */
  readonly note: string;
}

/** What changed between two proofs of the same request: law, calendar or time zone data, in the order of the steps. */
export function compareProofs(before: DueProof, after: DueProof): readonly DriftCause[] {
  const zones = compareZones(before, after);
  const causes = [...zones, ...compareDays(before, after)];
  if (before.deadline_at !== after.deadline_at && zones.length === 0) {
    causes.push({
      cause: 'deadline',
      note: lowerFirst(stepOf(after, 'deadline')?.note ?? after.deadline_at),
    });
  }
  if (causes.length > 0) return causes;
  return [{ cause: 'unknown', note: `${describeSources(before)} became ${describeSources(after)}` }];
}

function compareZones(before: DueProof, after: DueProof): DriftCause[] {
  if (before.time_zone !== after.time_zone) {
    return [
      { cause: 'time_zone', note: `the time zone was ${before.time_zone}, now it is ${after.time_zone}` },
    ];
  }
  // The same time on the wall at another instant: only the zone's offset can have changed.
  const offsets = new Map(before.steps.map((step) => [wallOf(step), offsetOf(step)]));
  const changed = [openingOf(after), ...after.steps].find(
    (step) => step !== undefined && (offsets.get(wallOf(step)) ?? offsetOf(step)) !== offsetOf(step),
  );
  if (changed === undefined) return [];
  const was = offsets.get(wallOf(changed));
  return [
    {
      cause: 'time_zone_data',
      note: `${after.time_zone} is at ${offsetOf(changed)} on ${dateOf(changed)}, it was thought to be at ${was} (tz data ${before.tz_version}, now ${after.tz_version})`,
    },
  ];
}

function compareDays(before: DueProof, after: DueProof): DriftCause[] {
  const counted = stepOf(after, 'notice_period');
  const countedBefore = stepOf(before, 'notice_period');
  // Business days were counted differently: everything after it starts elsewhere, so nothing after it compares.
  if (counted !== undefined && countedBefore !== undefined && dateOf(counted) !== dateOf(countedBefore)) {
    return [
      {
        cause: 'day_count',
        note: `the notice period: ${lowerFirst(counted.note)} (before: ${countedBefore.note})`,
      },
    ];
  }
  const causes: DriftCause[] = [];
  const closedBefore = new Map(closedDays(before));
  const closedAfter = new Map(closedDays(after));
  for (const [date, step] of closedAfter) {
    if (!closedBefore.has(date)) causes.push({ cause: 'day_closed', note: trimDot(step.note) });
  }
  for (const [date, step] of closedBefore) {
    if (!closedAfter.has(date)) {
      causes.push({
        cause: 'day_open',
        note: `${date} is open now; it was told before: ${trimDot(step.note)}`,
      });
    }
  }
  const opening = openingOf(after);
  const openingBefore = openingOf(before);
  if (
    opening !== undefined &&
    openingBefore !== undefined &&
    dateOf(opening) === dateOf(openingBefore) &&
    wallOf(opening) !== wallOf(openingBefore)
  ) {
    causes.push({
      cause: 'opening_hours',
      note: `${trimDot(opening.note)} (before: ${trimDot(openingBefore.note)})`,
    });
  }
  return causes;
}

function closedDays({ steps }: DueProof): [string, DueStep][] {
  return steps.filter((step) => step.rule === 'closed').map((step) => [dateOf(step), step]);
}

function openingOf(proof: DueProof): DueStep | undefined {
  return stepOf(proof, 'opening') ?? stepOf(proof, 'within_hours');
}

function stepOf({ steps }: DueProof, rule: DueStep['rule']): DueStep | undefined {
  return steps.find((step) => step.rule === rule);
}

function describeSources(proof: DueProof): string {
  return `calendar ${proof.calendar_sha256.slice(0, 12)}, ${proof.holiday_library}, tz data ${proof.tz_version}`;
}

/** `2027-03-01T09:00:00` of `2027-03-01T09:00:00+01:00`. */
function wallOf(step: DueStep): string {
  return step.local.slice(0, 19);
}

function offsetOf(step: DueStep): string {
  return step.local.slice(19);
}

function dateOf(step: DueStep): string {
  return step.local.slice(0, 10);
}

function trimDot(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
