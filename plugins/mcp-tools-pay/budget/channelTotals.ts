// What vouchers of agents' channels were signed for, kept beside the budget and as long as it. A seller's total is held
// against it: a voucher that was just sent proves no earlier one.
import { Effect, FileSystem, Path, Schema } from "effect"
import { replaceFile } from "../replaceFile.ts"
import { BudgetUnavailable, type SignedTotals } from "./BudgetStore.ts"
import { withDecimals } from "./ReservationWire.ts"

export interface ChannelTotals {
  readonly get: (channelId: string) => Effect.Effect<SignedTotals | undefined, BudgetUnavailable>
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
  load: Effect.Effect<ReadonlyMap<string, SignedTotals>, BudgetUnavailable>,
  save: (all: ReadonlyMap<string, SignedTotals>) => Effect.Effect<void, BudgetUnavailable>
): ChannelTotals => ({
  get: (channelId) => Effect.map(load, (all) => all.get(channelId)),
  put: (channelId, totals) => Effect.flatMap(load, (all) => save(withOne(all, channelId, totals)))
})

export const totalsInMemory = (): ChannelTotals => {
  let all: ReadonlyMap<string, SignedTotals> = new Map()
  return makeTotals(
    Effect.sync(() => all),
    (next) => Effect.sync(() => void (all = next))
  )
}

/** A file of `folder`: written beside, and put in its place. */
export const totalsInFile = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join(folder, "channels.json")
  const guarded = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))
  const load = Effect.gen(function* () {
    const isThere = yield* files.exists(file)
    return new Map(
      isThere ? Object.entries(yield* Schema.decodeUnknownEffect(Text)(yield* files.readFileString(file))) : []
    )
  })
  return makeTotals(guarded(load), (all) =>
    guarded(replaceFile(files, file, JSON.stringify(Object.fromEntries(all), withDecimals)))
  )
})
