import type { Command } from 'commander';
import { createOperator, type Operator } from '../pipeline/operate/operator.ts';
import { type CommonOptions, type Context, withCommonOptions } from './context.ts';

/** Options of what ends in the audit trail. */
export interface WithReason extends CommonOptions {
  readonly reason?: string;
}

/** Adds `--reason`. */
export function withReason(command: Command): Command {
  return withCommonOptions(command).option('--reason <text>', 'why; it is kept in the audit trail');
}

/** Who does it and why. */
export function by({ actor }: Context, { reason }: WithReason): Operator {
  return createOperator(actor, reason);
}
