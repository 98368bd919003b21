// What vouchers of agents' channels were signed for, kept beside the budget and as long as it. A seller's total is held
// against it: a voucher that was just sent proves no earlier one.
import { Effect, FileSystem, Path, Schema } from "effect"
import { replaceFile } from "../replaceFile.ts"
import { BudgetUnavailable, type SignedTotals } from "./BudgetStore.ts"
import { withDecimals } from "./ReservationWire.ts"

export interface ChannelTotals {
  readonly get: (channelId: string) => SignedTotals | undefined
  readonly put: (channelId: string, totals: SignedTotals) => Effect.Effect<void, BudgetUnavailable>
}

/** Channels that are kept at most; the one that was used the longest ago goes. */
const channelsMax = 10_000

const withOne = (all: ReadonlyMap<string, SignedTotals>, channelId: string, totals: SignedTotals) => {
  const next = new Map(all)
  next.delete(channelId)
  next.set(channelId, totals)
  for (const oldest of next.keys()) {
    if (next.size <= channelsMax) break
    next.delete(oldest)
  }
  return next
}

const amount = Schema.BigIntFromString
const Text = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Struct({ counted: amount, sent: amount })))

/** `save` puts a change where it lasts, before it counts. */
const makeTotals = (
  initial: ReadonlyMap<string, SignedTotals>,
  save: (all: ReadonlyMap<string, SignedTotals>) => Effect.Effect<void, BudgetUnavailable>
): ChannelTotals => {
  let all = initial
  return {
    get: (channelId) => all.get(channelId),
    put: (channelId, totals) => {
      const next = withOne(all, channelId, totals)
      return Effect.andThen(
        save(next),
        Effect.sync(() => void (all = next))
      )
    }
  }
}

export const totalsInMemory = (): ChannelTotals => makeTotals(new Map(), () => Effect.void)

/** A file of `folder`, which this process has alone: written beside, and put in its place. */
export const totalsInFile = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join(folder, "channels.json")
  const found = (yield* files.exists(file))
    ? yield* Schema.decodeUnknownEffect(Text)(yield* files.readFileString(file))
    : {}
  const save = (all: ReadonlyMap<string, SignedTotals>) =>
    Effect.mapError(
      replaceFile(files, file, JSON.stringify(Object.fromEntries(all), withDecimals)),
      (cause) => new BudgetUnavailable({ cause })
    )
  return makeTotals(new Map(Object.entries(found)), save)
})
