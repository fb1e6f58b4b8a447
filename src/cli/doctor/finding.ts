/** What a check found. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'wrong' | 'skipped';
  readonly detail: string;
  /** What to do about it. */
  readonly mend?: string;
}

export function ok(check: string, detail: string): Finding {
  return { check, status: 'ok', detail };
}

export function wrong(check: string, detail: string, mend: string): Finding {
  return { check, status: 'wrong', detail, mend };
}

export function warning(check: string, detail: string, mend: string): Finding {
  return { check, status: 'warning', detail, mend };
}

export function skipped(check: string, detail: string): Finding {
  return { check, status: 'skipped', detail };
}
