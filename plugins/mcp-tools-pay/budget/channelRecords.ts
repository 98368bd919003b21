// Records of agents' channels, by channel: the amounts that vouchers were signed for, and the channel's terms, which a
// restarted process needs to ask for a refund and an operator needs to withdraw. They are in memory, or in a file that
// the processes of one machine share. Each change runs as one of the store's steps.
import { Effect, FileSystem, Path, Schema } from "effect"
import { replaceFile } from "../replaceFile.ts"
import { BudgetUnavailable, type SignedTotals, type StoredChannel } from "./BudgetStore.ts"
import { withDecimals } from "./ReservationWire.ts"

export interface Records<A> {
  readonly all: Effect.Effect<ReadonlyMap<string, A>, BudgetUnavailable>
  /** Undefined deletes the record. */
  readonly put: (channelId: string, record: A | undefined) => Effect.Effect<void, BudgetUnavailable>
}

/** Maximum number of channels; the least recently updated one is dropped first. */
const channelsMax = 10_000

const withOne = <A>(all: ReadonlyMap<string, A>, channelId: string, record: A | undefined) => {
  const next = new Map(all)
  next.delete(channelId)
  if (record !== undefined) next.set(channelId, record)
  for (const oldest of next.keys()) {
    if (next.size <= channelsMax) break
    next.delete(oldest)
  }
  return next
}

export const recordsInMemory = <A>(): Records<A> => {
  let all: ReadonlyMap<string, A> = new Map()
  return {
    all: Effect.sync(() => all),
    put: (channelId, record) => Effect.sync(() => void (all = withOne(all, channelId, record)))
  }
}

const amount = Schema.BigIntFromString
export const totalsCodec = Schema.fromJsonString(
  Schema.Record(Schema.String, Schema.Struct({ counted: amount, sent: amount }))
)

const Config = Schema.Struct({
  payer: Schema.String,
  payerAuthorizer: Schema.String,
  receiver: Schema.String,
  receiverAuthorizer: Schema.String,
  token: Schema.String,
  withdrawDelay: Schema.Int,
  salt: Schema.String
})
export const channelsCodec = Schema.fromJsonString(
  Schema.Record(
    Schema.String,
    Schema.Struct({ agent: Schema.String, contract: Schema.String, config: Config, sealed: Schema.String })
  )
)

/** Records in a file of `folder`, which is replaced as a whole. */
export const recordsInFile = Effect.fnUntraced(function* <A extends SignedTotals | Omit<StoredChannel, "channelId">>(
  folder: string,
  name: string,
  codec: Schema.Codec<Readonly<Record<string, A>>, string>
) {
  const files = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join(folder, name)
  const guarded = <B, E>(effect: Effect.Effect<B, E>) =>
    Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))
  const all = guarded(
    Effect.gen(function* () {
      if (!(yield* files.exists(file))) return new Map<string, A>()
      return new Map(Object.entries(yield* Schema.decodeUnknownEffect(codec)(yield* files.readFileString(file))))
    })
  )
  const records: Records<A> = {
    all,
    put: (channelId, record) =>
      Effect.flatMap(all, (known) => {
        const next = Object.fromEntries(withOne(known, channelId, record))
        return guarded(replaceFile(files, file, JSON.stringify(next, withDecimals)))
      })
  }
  return records
})
