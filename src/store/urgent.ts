/** So near its deadline a delivery is urgent: it is claimed, and announced again, before what can wait. */
export const URGENT_MS = 3_600_000;
