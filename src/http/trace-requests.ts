import type { FastifyInstance } from 'fastify';
import type { Traces } from '../runtime/traces.ts';

/** Makes every request of the API a span, in its caller's trace if it has one. */
export function addTraces(app: FastifyInstance, traces: Traces): void {
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.routeOptions.url;
    if (route?.startsWith('/v1/') !== true) return done();
    const span = traces.begin(`${request.method} ${route}`, request.headers['traceparent'], {
      kind: 'server',
      attributes: { 'http.request.method': request.method, 'http.route': route },
    });
    reply.raw.once('close', () => {
      span.set({ 'http.response.status_code': reply.statusCode });
      if (reply.statusCode >= 500) span.fail(String(reply.statusCode));
      span.end();
    });
    return traces.within(span, done);
  });
}
