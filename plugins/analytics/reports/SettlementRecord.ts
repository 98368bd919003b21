// A settlement as reports show it. Each member declares its schema and how it follows from the stored settlement; the
// body, its description and the encoding derive from these declarations. A column that reports show is declared in
// `recording/SettlementFact.ts` and here (S178–S180).
import { Schema } from "effect"
import { text } from "../../../kernel/http/wireSchema.ts"
import type { SettlementFact } from "../recording/SettlementFact.ts"
import { address, assetNames, count, maybe, moment, pageOf, status } from "./ReportWire.ts"
import type { Spelling } from "./Spelling.ts"

type Encode<A> = (fact: SettlementFact, spelling: Spelling["Service"]) => A

const member = <S extends Schema.Constraint>(schema: S, encode: Encode<S["Type"]>) => ({ schema, encode })

const recordMembers = {
  id: member(Schema.String, ({ id }) => id),
  occurred_at: member(moment, ({ occurredAt }) => occurredAt.toISOString()),
  network: member(Schema.String, ({ network }, spelling) => spelling.network(network)),
  scheme: member(Schema.String, ({ scheme }) => scheme),
  asset: member(assetNames.asset, ({ asset }) => asset),
  asset_symbol: member(assetNames.asset_symbol, ({ asset }, { amounts }) => amounts.name(asset).asset_symbol),
  asset_decimals: member(assetNames.asset_decimals, ({ asset }, { amounts }) => amounts.name(asset).asset_decimals),
  payer: member(address, ({ payer }, { redaction }) => redaction.show(payer)),
  pay_to: member(address, ({ payTo }, { redaction }) => redaction.show(payTo)),
  max_amount: member(count, ({ amountMax }) => String(amountMax)),
  amount: member(
    maybe.annotate({ description: "Amount transferred; 0 if it failed, null while unknown." }),
    ({ amount }) => amount?.toString() ?? null
  ),
  fee_stroops: member(count, ({ feeStroops }) => String(feeStroops)),
  transaction_hash: member(Schema.String, ({ transactionHash }) => transactionHash),
  // Open settlements are never read here, so their case does not occur.
  status: member(status, ({ status }) => (status === "open" ? "unknown" : status)),
  facilitator_id: member(text("The replica that recorded it."), ({ facilitatorId }) => facilitatorId),
  resource_id: member(maybe, ({ resourceId }) => resourceId?.toString() ?? null),
  resource_url: member(maybe, ({ resourceUrl }) => resourceUrl),
  error_reason: member(maybe, ({ errorReason }, { word }) => (errorReason === null ? null : word(errorReason))),
  organic: member(Schema.Boolean, ({ organic }) => organic)
}

const listedMembers = {
  ...recordMembers,
  origin: member(maybe.annotate({ description: "Origin of its resource." }), ({ resourceOrigin }) => resourceOrigin),
  key: member(
    maybe.annotate({ description: "Label of the key that settled it; null if it was not kept." }),
    ({ principal }) => principal
  )
}

type Members = Readonly<Record<string, { readonly schema: Schema.Constraint; readonly encode: Encode<unknown> }>>
type Body<M extends Members> = { readonly [K in keyof M]: ReturnType<M[K]["encode"]> }

const schemasOf = <M extends Members>(members: M) =>
  Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, schema])) as {
    readonly [K in keyof M]: M[K]["schema"]
  }

const encoderOf = <M extends Members>(members: M) => {
  const entries = Object.entries(members)
  return (spelling: Spelling["Service"]) =>
    (fact: SettlementFact): Body<M> =>
      Object.fromEntries(entries.map(([name, { encode }]) => [name, encode(fact, spelling)])) as Body<M>
}

export const SettlementRecord = Schema.Struct(schemasOf(recordMembers)).annotate({ identifier: "SettlementRecord" })
export const SettlementRecords = pageOf(SettlementRecord)
export const recordOf = encoderOf(recordMembers)

export const ListedSettlement = Schema.Struct(schemasOf(listedMembers))
export const listedOf = encoderOf(listedMembers)
