import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [Address, number];

/** Says which addresses may be connected to. */
export interface AddressGuard {
  /** `public`: anyone may be called there; `listed`: only because the operator allowed it; undefined: not at all. */
  verdict(address: string): 'public' | 'listed' | undefined;
  isAllowed(address: string): boolean;
}

/**
 * IPv4 ranges that are not somebody's public service: the IANA special-purpose registry (RFC 6890 and its
 * successors), multicast, and the one cloud metadata address that lies outside of them.
 */
const CLOSED_V4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private use
  '100.64.0.0/10', // shared by carriers (metadata of Alibaba Cloud: 100.100.100.200)
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // metadata of Azure
  '169.254.0.0/16', // link local (metadata of most clouds: 169.254.169.254)
  '172.16.0.0/12', // private use
  '192.0.0.0/24', // protocol assignments (metadata of Oracle Cloud: 192.0.0.192)
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private use
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
].map(parseRange);

/** The only IPv6 space that is handed out for services; everything outside of it is closed. */
const OPEN_V6 = parseRange('2000::/3');

const CLOSED_V6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarking, AMT, AS112, ORCHID, drone identifiers
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: any IPv4 address, the private ones too, behind a relay
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
].map(parseRange);

/** Translators turn this prefix into the IPv4 address in its last 32 bits (RFC 6052). */
const NAT64 = parseRange('64:ff9b::/96');

/**
 * @param allow  CIDRs (or single addresses) that may be called although they are not public
 * @throws Error for an entry that is neither
 */
export function createAddressGuard(allow: readonly string[]): AddressGuard {
  const listed = allow.map(parseRange);
  function verdict(text: string): 'public' | 'listed' | undefined {
    // ipaddr.js also reads short and octal forms, which resolvers and sockets read in ways of their own.
    if (isIP(text) === 0) return undefined;
    const address = effective(ipaddr.parse(text));
    if (isPublic(address)) return 'public';
    return listed.some((range) => contains(range, address)) ? 'listed' : undefined;
  }
  return { verdict, isAllowed: (address) => verdict(address) !== undefined };
}

/** The address that would really be reached: the IPv4 one where an IPv6 address merely carries it. */
function effective(address: Address): Address {
  if (!(address instanceof ipaddr.IPv6)) return address;
  if (!address.isIPv4MappedAddress() && !contains(NAT64, address)) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

function isPublic(address: Address): boolean {
  if (address instanceof ipaddr.IPv4) return !CLOSED_V4.some((range) => contains(range, address));
  return contains(OPEN_V6, address) && !CLOSED_V6.some((range) => contains(range, address));
}

function contains([network, bits]: Range, address: Address): boolean {
  return network.kind() === address.kind() && address.match(network, bits);
}

function parseRange(text: string): Range {
  const [network = '', bits] = text.split('/');
  try {
    if (isIP(network) !== 0 && bits !== undefined) return ipaddr.parseCIDR(text);
    if (isIP(network) !== 0) return [ipaddr.parse(network), isIP(network) === 4 ? 32 : 128];
  } catch {
    // Said below.
  }
  throw new Error(`not an address range: ${JSON.stringify(text)}`);
}
