/** The parts that one process may play. */
export const ROLES = ['api', 'ingress', 'worker', 'reconciler'] as const;
export type Role = (typeof ROLES)[number];
