import type { TargetRules } from '../domain/target.ts';
import { createAddressGuard } from './address-guard.ts';

/** The rules for URLs of endpoints under a configuration; apart from the clients, which are much to load. */
export function createTargetRules({
  allow,
  allowHttp,
}: {
  readonly allow: readonly string[];
  readonly allowHttp: boolean;
}): TargetRules {
  return { allowHttp, isAllowedAddress: createAddressGuard(allow).isAllowed };
}
