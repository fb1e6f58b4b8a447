import type { ServerResponse } from 'node:http';
import Type, { type Static } from 'typebox';
import { DeadLetterFilterMembers, ReplayBody } from '../../domain/requests/operations.ts';
import { readBody, readInstant } from '../../pipeline/accept/read-requests.ts';
import { findEndpointId } from '../../pipeline/endpoint-reference.ts';
import { createOperator } from '../../pipeline/operate/operator.ts';
import { deadLetterView } from '../../pipeline/views.ts';
import { type DeadLetterFilter, listDeadLetters } from '../../store/dead-letters.ts';
import { DeadLetterPage, Replay } from '../answers.ts';
import { answer } from '../describe.ts';
import { readPage } from '../page.ts';
import type { Api, ApiServer } from '../parts.ts';
import { PAGE_MEMBERS } from '../read.ts';
import { body } from '../requests.ts';

const Query = Type.Object({ ...DeadLetterFilterMembers, ...PAGE_MEMBERS }, { additionalProperties: false });

export function addDeadLetterRoutes(app: ApiServer, api: Api): void {
  app.get('/dead-letters', {
    config: { scopes: ['read'], refuses: ['not_found', 'too_broad'] },
    schema: {
      operationId: 'listDeadLetters',
      tags: ['dead-letters'],
      summary: 'List dead letters, newest first',
      querystring: Query,
      response: { 200: answer(DeadLetterPage, 'A page.') },
    },
    handler: async (request) => {
      const filter = await readFilter(request.query);
      return readPage({
        name: 'dead-letters',
        query: request.query,
        read: (after, limit) => listDeadLetters(api.db, filter, { before: after && String(after[0]), limit }),
        positionOf: ({ delivery }) => [delivery.deliveryId],
        show: deadLetterView,
      });
    },
  });

  app.post('/dead-letters/replay', {
    config: { scopes: ['operate'], refuses: ['not_found', 'too_broad'] },
    schema: {
      operationId: 'replayDeadLetters',
      tags: ['dead-letters'],
      summary: 'Send again every dead letter that matches; `dry_run` only counts',
      description:
        'Answers when all are due again, at a rate the broker and the workers keep up with; whoever hangs up ends it after the page in hand. What dies again meanwhile is left alone.',
      body: body('ReplayRequest'),
      response: { 200: answer(Replay, 'What was counted and done.') },
    },
    handler: async (request, reply) => {
      const {
        filter,
        dry_run = false,
        force = false,
        reason,
      } = readBody<ReplayBody>(ReplayBody, request.body);
      const report = await api.deliveries.replay(
        await readFilter(filter, '/filter'),
        { dryRun: dry_run, force, signal: AbortSignal.any([api.signal, whenHungUp(reply.raw)]) },
        createOperator(request.principal.actor, reason),
      );
      return {
        matched: report.matched,
        replayed: report.replayed,
        skipped: {
          endpoint_disabled: report.skipped.endpointDisabled,
          deadline_passed: report.skipped.deadlinePassed,
        },
        dry_run,
        complete: report.complete,
      };
    },
  });

  async function readFilter(
    filter: Omit<Static<typeof Query>, keyof typeof PAGE_MEMBERS>,
    path = '',
  ): Promise<DeadLetterFilter> {
    return {
      endpointId: await findEndpointId(api.db, filter.endpoint_id, `${path}/endpoint_id`),
      deadReason: filter.dead_reason,
      contractRef: filter.contract_ref,
      deadAfter: readInstant(filter.dead_after, `${path}/dead_after`),
      deadBefore: readInstant(filter.dead_before, `${path}/dead_before`),
    };
  }
}

function whenHungUp(response: ServerResponse): AbortSignal {
  const abort = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) abort.abort();
  });
  return abort.signal;
}
