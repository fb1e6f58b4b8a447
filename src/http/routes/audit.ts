import Type from 'typebox';
import { ContractRef } from '../../domain/requests/schemas.ts';
import { auditView } from '../../pipeline/views.ts';
import { listAuditRecords } from '../../store/audit.ts';
import { AuditRecord, pageOf } from '../answers.ts';
import { readPage } from '../page.ts';
import type { Api, ApiServer } from '../parts.ts';
import { PAGE_MEMBERS } from '../read.ts';

export function addAuditRoutes(app: ApiServer, api: Api): void {
  app.get('/audit', {
    config: { scopes: ['read'] },
    schema: {
      operationId: 'listAuditRecords',
      tags: ['audit'],
      summary: 'List audit records, newest delivery first: one for every end of a delivery',
      querystring: Type.Object(
        {
          contract_ref: Type.Optional(ContractRef),
          date: Type.Optional(
            Type.String({ format: 'date', description: 'Due or ended on that day, UTC: YYYY-MM-DD.' }),
          ),
          ...PAGE_MEMBERS,
        },
        { additionalProperties: false },
      ),
      response: { 200: pageOf(AuditRecord, 'A page.') },
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
}
