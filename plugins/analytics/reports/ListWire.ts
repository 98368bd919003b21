// The bodies of the pages' own reports as Schemas: settlements by cursor, search results for one word, and the
// movements of a range compared with the one before it.
import { Schema } from "effect"
import { countedFields, text, time, units, whole } from "../../../kernel/http/wireSchema.ts"
import { assetNames, maybe } from "./ReportWire.ts"
import { ListedSettlement } from "./SettlementRecord.ts"

export const SettlementsListed = Schema.Struct({
  items: Schema.Array(ListedSettlement),
  pagination: Schema.Struct(countedFields)
}).annotate({ identifier: "SettlementsListed" })

export const Found = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(["settlement", "account", "asset", "resource", "origin", "key", "reason"]),
      id: text("Transaction hash, address, contract, internal id, origin, label or reason, depending on the kind."),
      title: text("Display name."),
      note: text("Short description.")
    })
  )
}).annotate({ identifier: "Found" })

const Sums = Schema.Struct({
  settled: whole("Settlements."),
  failed: whole("Settlements."),
  pending: whole("Settlements without an outcome."),
  amount: units("Amount transferred, in atomic units of the pulse's asset.")
})

const Share = Schema.Struct({
  kind: Schema.Literals(["scheme", "asset", "network"]),
  key: Schema.String,
  ...assetNames,
  settlements: whole("In the range."),
  settled: whole("Of them."),
  amount: units("Atomic units of the pulse's asset; of its own asset for an asset.")
})

export const Pulse = Schema.Struct({
  from: time("Start of the first bucket."),
  to: time("End of the last bucket."),
  bucket: Schema.Literals(["hour", "day"]),
  ...assetNames,
  now: Sums,
  before: Schema.NullOr(Sums).annotate({
    description: "The preceding range of equal length; null if it was not recorded completely."
  }),
  series: Schema.Array(
    Schema.Struct({
      at: time("Start of the bucket."),
      recorded: Schema.Boolean.annotate({
        description: "False before the first settlement: the figures are unknown, not zero."
      }),
      ...Sums.fields
    })
  ),
  shares: Schema.Array(Share),
  reasons: Schema.Array(
    Schema.Struct({ reason: Schema.String, failed: whole("UTC days of the range."), pending: whole("The same.") })
  )
}).annotate({ identifier: "Pulse" })

export const Selling = Schema.Struct({
  over: whole("Sample size: the newest settlements that were read."),
  settled: whole("Of them."),
  organic: whole("Settled ones, without payments to a recipient that had paid the payer before."),
  resources: Schema.Array(
    Schema.Struct({
      resource_id: maybe,
      resource_url: Schema.String,
      ...assetNames,
      settlements: whole("For it."),
      settled: whole("Of them."),
      amount: units("Amount transferred, atomic units.")
    })
  )
}).annotate({ identifier: "Selling" })
