// The state of a replica after a reread, for an operator: whether it applied the reread, and how its keys differ from
// those of the replica that was asked. Pure.
import type { ReplicaKeys } from "./KeyJournal.ts"

/** A name without its digest, which only serves comparison. */
const shown = (name: string): string => name.slice(0, name.lastIndexOf(" "))

const listed = (names: ReadonlyArray<string>): string => [...new Set(names.map(shown))].join(", ")

/** The reason why a replica is behind the replica that was asked; undefined if it is not behind. */
export const replicaFault = (asked: ReplicaKeys, other: ReplicaKeys): string | undefined => {
  if (other.revision < asked.revision) return "has not reread its sources"
  if (other.fault !== null) return `kept its former keys: ${other.fault}`
  const lacked = asked.inForce.filter((name) => !other.inForce.includes(name))
  const extra = other.inForce.filter((name) => !asked.inForce.includes(name))
  const faults = [
    ...(lacked.length === 0 ? [] : [`its sources lack ${listed(lacked)}`]),
    ...(extra.length === 0 ? [] : [`it accepts ${listed(extra)}, which the sources here do not list`]),
    ...(other.refused.length === 0 ? [] : [`its sources still list ${listed(other.refused)}, revoked and refused`])
  ]
  return faults.length === 0 ? undefined : faults.join("; ")
}
