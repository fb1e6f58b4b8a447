import Type from 'typebox';
import { ContractRef } from '../../domain/requests/schemas.ts';
import { auditView } from '../../pipeline/views.ts';
import { listAuditRecords } from '../../store/evidence/audit.ts';
import { AuditRecordPage, EvidenceBundle } from '../answers.ts';
import { answer } from '../describe.ts';
import { readPage } from '../page.ts';
import type { Api, ApiServer } from '../parts.ts';
import { PAGE_MEMBERS } from '../read.ts';
import { ID_IN_PATH } from '../requests.ts';

export function addAuditRoutes(app: ApiServer, api: Api): void {
  app.get('/audit', {
    config: { scopes: ['read'], refuses: ['too_broad'] },
    schema: {
      operationId: 'listAuditRecords',
      tags: ['audit'],
      summary: 'List audit records, newest delivery first: one for every end of a delivery',
      querystring: Type.Object(
        {
          contract_ref: Type.Optional(ContractRef),
          date: Type.Optional(
            Type.String({
              format: 'date',
              description:
                'A day from when it was due until it ended, in UTC; with a contract in its own time zone, or the renewal date.',
            }),
          ),
          ...PAGE_MEMBERS,
        },
        { additionalProperties: false },
      ),
      response: { 200: answer(AuditRecordPage, 'A page.') },
    },
    handler: (request) =>
      readPage({
        name: 'audit',
        query: request.query,
        read: (after, limit) =>
          listAuditRecords(
            api.db,
            { contractRef: request.query.contract_ref, date: request.query.date },
            { after: after && { deliveryId: String(after[0]), cycle: Number(after[1]) }, limit },
          ),
        positionOf: (record) => [record.deliveryId, record.cycle],
        show: auditView,
      }),
  });

  app.get('/audit/:id/evidence', {
    config: { scopes: ['read'], refuses: ['not_found'] },
    schema: {
      operationId: 'getEvidence',
      tags: ['audit'],
      summary: 'Everything that proves what was sent, when, and what was answered',
      description:
        'One file, to be checked offline: `duepost audit verify`. Its bytes are signed, so keep them as they are.',
      params: ID_IN_PATH,
      response: {
        200: answer(EvidenceBundle, 'The evidence bundle.', {
          'Content-Disposition': Type.String({ description: 'Names the file.' }),
        }),
      },
    },
    handler: async (request, reply) => {
      const { id } = request.params;
      const bundle = await api.exportEvidence(id, request.principal.actor);
      return reply
        .type('application/json')
        .header('content-disposition', `attachment; filename="${id}.json"`)
        .send(bundle);
    },
  });
}
