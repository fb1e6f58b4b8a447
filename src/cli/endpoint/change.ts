import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import {
  EndpointBody,
  EndpointPatchBody,
  type EndpointPatchBody as Patch,
} from '../../domain/requests/schemas.ts';
import { readBody } from '../../pipeline/accept/read-requests.ts';
import { endpointView } from '../../pipeline/views.ts';
import { openEndpointOperator } from '../../roles/parts.ts';
import { readJson, readList, readWhole } from '../arguments.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { NOBODY, openDatabase } from '../parts.ts';
import { present } from '../present.ts';
import { formatEndpoint } from './format.ts';

interface Settings extends CommonOptions {
  readonly name?: string;
  readonly url?: string;
  readonly mode?: string;
  readonly eventTypes?: string[];
  readonly policy?: unknown;
  readonly retrySchedule?: string[];
  readonly maxAttempts?: number;
  readonly maxInFlight?: number;
  readonly header?: Record<string, string>;
  readonly ca?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  /** False: taken away. */
  readonly tls?: boolean;
}

/** `duepost endpoint create|patch`. */
export function addEndpointChanges(group: Command): void {
  const create = withSettings(group.command('create'))
    .description('make an endpoint; its secret is shown once')
    .action((options: Settings) =>
      inContext(options, async (context) => {
        const body = readBody<EndpointBody>(EndpointBody, toBody(options, create));
        const pool = await openDatabase(context);
        const operator = openEndpointOperator({ pool, announcer: NOBODY }, context.config);
        const { endpoint, secret } = await operator.create(body, { actor: context.actor });
        context.print(
          { ...endpointView(endpoint), secret },
          () => `${formatEndpoint(endpoint)}\nsecret  ${secret}  (shown this once: give it to the receiver)`,
        );
      }),
    );
  withExamples(
    create,
    'duepost endpoint create --name customer-notices --url https://example.com/duepost',
    "duepost endpoint create --name trial --url https://example.com/hook --mode shadow --event-types 'order.*'",
    'duepost endpoint create --name busy --url https://example.com/hook --retry-schedule 0,10,60,300 --max-attempts 4',
    `duepost endpoint create --name notices --url https://example.com/n --policy '{"kind":"deadline","base_seconds":600}'`,
    'duepost endpoint create --name inner --url https://example.com/n --ca ca.pem --client-certificate us.pem --client-key us.key',
  );
  const patch = withSettings(group.command('patch <endpoint>'))
    .description('change an endpoint; what is not named stays')
    .option('--no-tls', 'take its own authorities and client certificate away')
    .option(
      '--patch <json>',
      'a JSON merge patch, for what has no option (null takes a member away)',
      readJson,
    )
    .action((reference: string, options: Settings & { readonly patch?: object }) =>
      inContext(options, async (context) => {
        const change = readBody<Patch>(EndpointPatchBody, { ...toBody(options, patch), ...options.patch });
        const pool = await openDatabase(context);
        const operator = openEndpointOperator({ pool, announcer: NOBODY }, context.config);
        const endpoint = await operator.patch(reference, change, { actor: context.actor });
        context.print(endpointView(endpoint), () => formatEndpoint(endpoint));
      }),
    );
  withExamples(
    patch,
    'duepost endpoint patch customer-notices --url https://example.com/new',
    'duepost endpoint patch customer-notices --retry-schedule 0,10,60,300 --max-attempts 4',
    `duepost endpoint patch customer-notices --patch '{"policy":null,"headers":{"X-Old":null}}'`,
  );
}

function withSettings(command: Command): Command {
  return withCommonOptions(command)
    .option('--name <name>', 'unique; lower case')
    .option('--url <url>', 'where to POST')
    .option('--mode <mode>', 'live, or shadow: everything but the call')
    .option('--event-types <list>', 'types, families such as order.*, or * for all', readList)
    .option('--policy <json>', 'a retry policy; @file reads it from a file', readJson)
    .option('--retry-schedule <seconds>', 'waits before attempt 1, 2, …; separated by commas', readList)
    .option('--max-attempts <n>', 'attempts in all', readWhole(1, 100))
    .option('--max-in-flight <n>', 'calls at once, per worker', readWhole(1, 10_000))
    .option('--header <name:value>', 'a header of its own; may be given several times', readHeader)
    .option('--ca <file>', 'authorities (PEM) that its server is certified by, in place of the public ones')
    .option('--client-certificate <file>', 'certificate (PEM) that calls to it show, its chain behind it')
    .option('--client-key <file>', 'key (PEM) of the client certificate; stored encrypted, never shown');
}

function readHeader(text: string, before: Record<string, string> = {}): Record<string, string> {
  const colon = text.indexOf(':');
  if (colon < 1) throw new InvalidArgumentError('It must be name:value.');
  return { ...before, [text.slice(0, colon).trim()]: text.slice(colon + 1).trim() };
}

function toBody(options: Settings, command: Command): Record<string, unknown> {
  const given = {
    name: options.name,
    url: options.url,
    mode: options.mode,
    event_types: options.eventTypes,
    policy: options.policy,
    retry_schedule: options.retrySchedule?.map(Number),
    max_attempts: options.maxAttempts,
    max_in_flight: options.maxInFlight,
    headers: options.header,
    tls: readTls(options, command),
  };
  return present(given);
}

function readTls(options: Settings, command: Command): Record<string, unknown> | null | undefined {
  const { ca, clientCertificate: certificate, clientKey: key } = options;
  const files = present({
    ca: readPem('--ca', ca, command),
    certificate: readPem('--client-certificate', certificate, command),
    key: readPem('--client-key', key, command),
  });
  const isGiven = Object.keys(files).length > 0;
  if (options.tls !== false) return isGiven ? files : undefined;
  if (isGiven) command.error('error: give --no-tls or certificates, not both');
  return null;
}

/** The complaint leaves the argument out: somebody may have given the key itself. */
function readPem(option: string, file: string | undefined, command: Command): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    return command.error(`error: ${option} names no file that can be read (${code})`);
  }
}
