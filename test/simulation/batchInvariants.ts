// Invariants of the batch contract at the end of a run, by the transactions that landed, ours and strangers', each with
// its movement: deposits equal the sum of the claimed, refunded, withdrawn and held amounts; claims of a channel rise,
// each counted once; receivers are only paid claimed amounts. `invariants.ts` compares the records with the
// transactions.
import { type BatchAct, type BatchChannel, heldOf } from "./SimulatedBatch.ts"
import type { World } from "./World.ts"

interface Landed {
  readonly act: BatchAct
  readonly moved: bigint
  readonly ledger: number
}

/** Every successful call, in the ledger's order. */
const landedIn = ({ ledger }: World): ReadonlyArray<Landed> => ledger.batchLog

const sumOf = (landed: ReadonlyArray<Landed>, kind: BatchAct["kind"], of: string): bigint =>
  landed.reduce(
    (sum, { act, moved }) =>
      act.kind === kind && ("channel" in act ? act.channel : act.receiver) === of ? sum + moved : sum,
    0n
  )

const channelViolations = (
  name: string,
  channel: BatchChannel,
  landed: ReadonlyArray<Landed>
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const [deposited, refunded, withdrawn] = (["deposit", "refund", "withdrawEnd"] as const).map((kind) =>
    sumOf(landed, kind, name)
  )
  const claims = landed.flatMap(({ act }) => (act.kind === "claim" && act.channel === name ? [act.total] : []))
  if (claims.some((total, at) => at > 0 && total <= claims[at - 1]!)) found.push(`${name} was claimed twice or back`)
  const claimed = claims.at(-1) ?? 0n
  const held = heldOf(channel)
  if (held < 0n) found.push(`${name} holds ${held}`)
  if (deposited !== claimed + refunded! + withdrawn! + held)
    found.push(`${name}: ${deposited} deposited, ${claimed} claimed, ${refunded} and ${withdrawn} back, ${held} held`)
  return found
}

export const batchViolations = (world: World): ReadonlyArray<string> => {
  const { batch } = world.ledger
  const landed = landedIn(world)
  const found = [...batch.channels].flatMap(([name, channel]) => channelViolations(name, channel, landed))
  for (const [receiver, settled] of batch.settled) {
    if (batch.unsettled(receiver) < 0n) found.push(`${receiver} was paid more than was claimed`)
    const paid = sumOf(landed, "sweep", receiver)
    if (paid !== settled) found.push(`${receiver} was paid ${paid}, and the contract says ${settled}`)
  }
  return found
}
