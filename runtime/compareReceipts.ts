// Compares the claims of receipts and leaves with the settlements' rows, member by member. A person with the database's
// password can change a row without a hash. Settlements with a corrected outcome have several leaves; only
// `kernel/audit/compareLog.ts` compares them.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"

interface ClaimedLeaf {
  /** Its place, as text. */
  readonly name: string
  readonly record: Readonly<Record<string, unknown>>
  /** The row's own columns. */
  readonly transaction: string | null
  readonly principal: string | null
  readonly payer: string | null
  readonly payTo: string | null
}

interface SettlementRow {
  readonly id: string
  readonly network: string
  readonly scheme: string
  readonly principal: string
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly resource: string | null
  readonly identifier: string | null
  readonly closedAt: string | null
  readonly at: string
}

type Wrong = (rule: string, subject: string, detail: string) => void
type Values = Readonly<Record<string, unknown>>

const hashOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`
/** Above this length a receipt contains the URL's hash. */
const resourceLengthMax = 256

/** Names of members that differ. */
const differing = (said: Values, expected: Values): ReadonlyArray<string> =>
  Object.keys(expected).filter((name) => said[name] !== expected[name])

/** Claims that a receipt must have according to a settlement's row. */
const claimsOf = (row: SettlementRow): Values => {
  const isLong = row.resource !== null && row.resource.length > resourceLengthMax
  return {
    network: row.network.replace("ledger:", "stellar:"),
    scheme: row.scheme,
    payer: row.payer,
    payTo: row.payTo,
    asset: row.asset,
    settlement: row.id,
    closedAt: row.closedAt === null ? undefined : Number(row.closedAt),
    resource: isLong ? undefined : (row.resource ?? undefined),
    resourceHash: isLong ? hashOf(row.resource!) : undefined,
    identifierHash: row.identifier === null ? undefined : hashOf(row.identifier)
  }
}

/** Claims that a receipt must have according to its leaf's record. */
const ofRecord = (record: Values): Values => ({
  network: record["network"],
  transaction: record["transaction"],
  ledger: record["ledger"],
  amount: record["moved"],
  fee: record["fee"],
  settlement: record["settlement"]
})

/** Compares the leaves and, by transaction, the claims of their stored receipts. */
export const compareReceipts = Effect.fn("audit.compareReceipts")(function* (
  leaves: ReadonlyArray<ClaimedLeaf>,
  claims: ReadonlyMap<string, Values>,
  wrong: Wrong
) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<SettlementRow>`select id::text as id, network, scheme, principal, payer, pay_to as "payTo",
      asset, resource_url as resource, identifier, floor(extract(epoch from closed_at))::text as "closedAt",
      floor(extract(epoch from greatest(recorded_at, resolved_at)) * 1000)::text as at
    from kernel_settlements where state in ('settled', 'failed', 'expired')`
  const byId = new Map(rows.map((row) => [row.id, row]))
  const bySettlement = Map.groupBy(leaves, ({ record }) => record["settlement"])
  for (const [settlement, [leaf, ...others]] of bySettlement) {
    if (leaf === undefined || others.length > 0) continue
    const { name, payTo, payer, principal, record, transaction } = leaf
    const row = byId.get(String(settlement))
    const report = (rule: string, members: ReadonlyArray<string>, than: string) =>
      members.forEach((member) => wrong(rule, name, `${member} differs from ${than}`))
    report("leaf", differing({ transaction }, { transaction: record["transaction"] }), "its record's")
    if (row !== undefined) {
      const owners = { principal: row.principal, payer: row.payer, payTo: row.payTo }
      report("leaf", differing({ principal, payer, payTo }, owners), "the settlement's")
      const said = { at: Number(row.at), network: claimsOf(row)["network"] }
      report("leaf", differing(record, said), "the settlement's")
    }
    const claimed = transaction === null || record["receipt"] === undefined ? undefined : claims.get(transaction)
    if (claimed === undefined) continue
    report("receipt", differing(claimed, ofRecord(record)), "its leaf's")
    if (row !== undefined) report("receipt", differing(claimed, claimsOf(row)), "the settlement's")
  }
})
