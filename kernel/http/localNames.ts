// Host names of this machine or this network, recognized by spelling only: special-use names, names without a dot, and
// IP addresses that are not public. The addresses of a public name are checked when it is dialed. Pure.
import { isPublicAddress } from "./addresses.ts"
import { parseAddress } from "../config/addressRange.ts"

/** Top-level names that never lead to the public internet (RFC 6761, 6762, 8375, 9476 and common private use). */
const localSuffixes = [
  "localhost",
  "local",
  "localdomain",
  "internal",
  "intranet",
  "private",
  "corp",
  "home",
  "lan",
  "arpa",
  "test",
  "invalid",
  "onion",
  "alt"
]

/** `host` in the form of a URL: lower case, IPv4 in dotted form, IPv6 with or without brackets. */
export const isLocalName = (host: string): boolean => {
  const bare = host.replace(/^\[|\]$/g, "").replace(/\.+$/, "")
  if (parseAddress(bare) !== undefined) return !isPublicAddress(bare)
  const labels = bare.split(".")
  return labels.length < 2 || localSuffixes.includes(labels.at(-1) ?? "") || labels.some((label) => label === "")
}
