import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { Readiness } from '../answers.ts';
import { answer } from '../describe.ts';

/** What a process says about its readiness: each check with `ok` or what is the matter. */
export interface ReadinessReport {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
}

/** What every process serves, without a key. */
export interface OperationOptions {
  readonly checkReadiness: () => Promise<ReadinessReport>;
  /** The text of `/metrics`. */
  readonly metrics: () => Promise<string>;
}

const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8';

export function addOperationRoutes(app: FastifyInstance, options: OperationOptions): void {
  app.get('/healthz', {
    schema: {
      security: [],
      operationId: 'getHealth',
      tags: ['operation'],
      summary: 'Whether the process is alive',
      response: { 200: Type.Object({ status: Type.Literal('ok') }, { description: 'It is.' }) },
    },
    handler: async () => ({ status: 'ok' }),
  });

  app.get('/readyz', {
    schema: {
      security: [],
      operationId: 'getReadiness',
      tags: ['operation'],
      summary: 'Whether the process has what it needs, and what is missing',
      response: {
        200: answer(Readiness, 'It has.'),
        503: answer(Readiness, 'Something is missing; `checks` names it.'),
      },
    },
    handler: async (_request, reply) => {
      const report = await options.checkReadiness();
      return reply.code(report.ready ? 200 : 503).send(report);
    },
  });

  app.get('/metrics', {
    schema: {
      security: [],
      operationId: 'getMetrics',
      tags: ['operation'],
      summary: 'Metrics in the text format of Prometheus',
      response: {
        200: { description: 'The metrics.', content: { 'text/plain': { schema: Type.String() } } },
      },
    },
    handler: async (_request, reply) => reply.type(PROMETHEUS).send(await options.metrics()),
  });
}
