const PROXIES = /^(https?|all|node_use_env)_proxy$/i;

/**
 * Variables that are set and change how other programs call endpoints, but not how this one does: proxies, and the one
 * that turns off the verification of certificates. Names only: the values may hold passwords.
 */
export function findIgnoredVariables(env: NodeJS.ProcessEnv = process.env): string[] {
  return Object.keys(env)
    .filter((name) => PROXIES.test(name) || (name === 'NODE_TLS_REJECT_UNAUTHORIZED' && env[name] === '0'))
    .filter((name) => env[name] !== '')
    .sort();
}
