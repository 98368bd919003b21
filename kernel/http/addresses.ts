// Which addresses are public, which lead to a cloud's instance services, and the name under which we account one. Pure.
import { memoize } from "../cache/memoize.ts"
import { inRange, parseAddress } from "../config/addressRange.ts"

/** Maximum number of cached names: more than a facilitator has clients at a time. */
const principalsMax = 1_024

/** Ranges outside the public internet (IANA's special-purpose registries, multicast and reserved space). */
const specialRanges = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3"
]

/**
 * Whether an address is on the public internet. IPv6 outside of 2000::/3 is not, nor are documentation, benchmarking
 * and Teredo; forms that carry an IPv4 address (mapped, NAT64, 6to4, compatible) are never public.
 */
export const isPublicAddress = (address: string): boolean => {
  const bytes = parseAddress(address)
  if (bytes === undefined) return false
  if (bytes.length === 4) return !address.includes(":") && !specialRanges.some((range) => inRange(address, range))
  return (
    inRange(address, "2000::/3") &&
    !["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"].some((range) =>
      inRange(address, range)
    )
  )
}

/** The IPv4 address that an IPv6 address reaches through a translator, in the forms that carry one. */
const carriedV4 = (address: string, bytes: ReadonlyArray<number>): ReadonlyArray<number> | undefined => {
  if (inRange(address, "2002::/16")) return bytes.slice(2, 6)
  return ["64:ff9b::/96", "::ffff:0:0:0/96", "::/96"].some((range) => inRange(address, range))
    ? bytes.slice(12)
    : undefined
}

/**
 * Addresses at which clouds give an instance its credentials: link-local space, and other addresses of the same
 * service.
 */
const instanceRanges = [
  // Local translators: each chooses the part of such an address that holds the IPv4 address.
  "64:ff9b:1::/48",
  "169.254.0.0/16",
  "fe80::/10",
  "fd00:ec2::/32",
  "fd20:ce::254",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192"
]

/**
 * Whether an address is a cloud metadata service, which gives a machine its credentials, in any form. No resource is
 * served there, so no setting allows it.
 */
export const isInstanceAddress = (address: string): boolean => {
  const bytes = parseAddress(address)
  if (bytes === undefined) return false
  const carried = bytes.length === 16 ? carriedV4(address, bytes)?.join(".") : undefined
  return instanceRanges.some((range) => inRange(address, range) || (carried !== undefined && inRange(carried, range)))
}

/**
 * The client's address: the peer's or, if the peer is a trusted proxy, the nearest one in `X-Forwarded-For` that no
 * trusted proxy has. Read from the nearest hop outwards, because a client may send the header too.
 */
export const clientAddress = (peer: string, forwardedFor: string, isTrusted: (address: string) => boolean): string => {
  let end = forwardedFor.length
  const nextHop = (): string | undefined => {
    while (end > 0) {
      const from = forwardedFor.lastIndexOf(",", end - 1) + 1
      const hop = forwardedFor.slice(from, end).trim()
      end = from - 1
      if (hop !== "") return hop
    }
    return undefined
  }
  let address = peer
  while (isTrusted(address)) {
    const next = nextHop()
    if (next === undefined || parseAddress(next) === undefined) break
    address = next
  }
  return address
}

/** `ip:` and the IPv4 address, or the /64 of an IPv6 one. */
export const principalOf = memoize({ name: "address-principals", capacity: principalsMax }, (address): string => {
  const bytes = parseAddress(address)
  if (bytes === undefined) return "ip:unknown"
  if (bytes.length === 4) return `ip:${bytes.join(".")}`
  const groups = [0, 2, 4, 6].map((at) => ((bytes[at]! << 8) | bytes[at + 1]!).toString(16))
  return `ip:${groups.join(":")}::/64`
})
