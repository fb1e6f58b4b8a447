import { endpointView } from '../../pipeline/views.ts';
import type { Endpoint } from '../../store/endpoints.ts';
import { formatFields } from '../print.ts';

/** An endpoint for people. */
export function formatEndpoint(endpoint: Endpoint): string {
  return formatFields(endpointView(endpoint, endpoint.policy ?? 'the default of what is sent'));
}
