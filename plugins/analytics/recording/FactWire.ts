// The facts that analytics reads, decoded: a settlement was recorded, it ended, settled payments were counted for
// resources. A fact of another kind, of a later version or of a shape that is not known is None: the reader goes on
// without it, since one bad row must never stop the rest. Pure.
import { Option, Schema } from "effect"
import type { Fact } from "../../../kernel/Facts.ts"
import { soldFact } from "../../catalog/contract.ts"

/** Atomic units or stroops, as decimal text. */
const Units = Schema.String.check(Schema.isPattern(/^(0|[1-9][0-9]{0,38})$/))
const Hash = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))
const id = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const Recorded = Schema.Struct({
  network: Schema.String,
  scheme: Schema.String,
  asset: Schema.String,
  payer: Schema.String,
  payTo: Schema.String,
  amountMax: Units,
  amount: Schema.optionalKey(Units),
  facilitator: Schema.optionalKey(Schema.String),
  transaction: Hash,
  resourceUrl: Schema.NullOr(Schema.String)
})
const Ended = Schema.Struct({
  moved: Schema.NullOr(Units),
  feeChargedStroops: Units,
  reason: Schema.NullOr(Schema.String)
})
const Sold = Schema.Struct({
  sales: Schema.Array(
    Schema.Struct({
      transaction: Hash,
      resourceId: Schema.String.check(Schema.isPattern(/^[1-9][0-9]{0,17}$/)),
      origin: Schema.NullOr(Schema.String)
    })
  )
})

export type Told =
  | { readonly _tag: "Recorded"; readonly id: string; readonly at: Date; readonly data: typeof Recorded.Type }
  | {
      readonly _tag: "Ended"
      readonly id: string
      readonly state: "settled" | "failed" | "expired" | "unresolved"
      readonly data: typeof Ended.Type
    }
  | { readonly _tag: "Sold"; readonly data: typeof Sold.Type }

const recorded = Schema.decodeUnknownOption(Recorded)
const ended = Schema.decodeUnknownOption(Ended)
const sold = Schema.decodeUnknownOption(Sold)

const ends = new Map([
  ["settlement.settled", "settled"],
  ["settlement.failed", "failed"],
  ["settlement.expired", "expired"],
  ["settlement.unresolved", "unresolved"]
] as const)

/** Whether a fact is one of those that analytics is about. */
export const concerns = ({ type }: Fact): boolean =>
  type === "settlement.recorded" || type === soldFact || ends.has(type as never)

export const readFact = ({ at, data, subject, type, version }: Fact): Option.Option<Told> => {
  if (version !== 1) return Option.none()
  if (type === soldFact) return Option.map(sold(data), (data) => ({ _tag: "Sold", data }))
  if (!id.test(subject)) return Option.none()
  if (type === "settlement.recorded")
    return Option.map(recorded(data), (data) => ({ _tag: "Recorded", id: subject, at, data }))
  const state = ends.get(type as never)
  return state === undefined
    ? Option.none()
    : Option.map(ended(data), (data) => ({ _tag: "Ended", id: subject, state, data }))
}
