import type { Command } from 'commander';
import { reencryptSecrets } from '../../pipeline/operate/reencrypt-secrets.ts';
import { createSecretBox } from '../../pipeline/secrets.ts';
import { CheckFailed } from '../check-failed.ts';
import { complain } from '../complain.ts';
import { inContext, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { by, type WithReason, withReason } from '../reason.ts';

/** `duepost endpoint reencrypt`. */
export function addEndpointReencrypt(group: Command): void {
  const reencrypt = withReason(group.command('reencrypt'))
    .description(
      'encrypt the secrets of all endpoints under the present master key; earlier keys are then not needed',
    )
    .action((options: WithReason) =>
      inContext(options, async (context) => {
        const { masterKey, previousMasterKeys } = context.config;
        const box = createSecretBox(masterKey, previousMasterKeys);
        const report = await reencryptSecrets(await openDatabase(context), box, by(context, options));
        const { reencrypted, current, unreadable } = report;
        context.print(report, () => `${reencrypted} encrypted again, ${current} were already`);
        if (unreadable.length === 0) return;
        complain(
          `no configured key opens the secrets of ${unreadable.join(', ')}: add theirs to DUEPOST_MASTER_KEY_PREVIOUS`,
        );
        throw new CheckFailed();
      }),
    );
  withExamples(reencrypt, 'duepost endpoint reencrypt');
}
