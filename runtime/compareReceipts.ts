// Compares leaves and stored receipts with the settlements' rows, member by member. A person with the database's
// password can change a row without a hash.
import { isDeepStrictEqual } from "node:util"
import { type LoggedOutcome, compareOutcome, type LogSides } from "../kernel/audit/compareLog.ts"
import { sha } from "./logTree.ts"

export interface LeafRow {
  readonly epoch: number
  readonly index: bigint
  readonly entry: Uint8Array
  readonly salt: Uint8Array | null
  readonly record: string | null
  readonly transaction: string | null
  readonly principal: string | null
  readonly payer: string | null
  readonly payTo: string | null
  /** Whether an operator has erased its content. */
  readonly erased: boolean
}

export interface OpenedLeaf {
  readonly row: LeafRow
  readonly record: LoggedOutcome & Values
}

export interface SettlementRow {
  readonly id: string
  readonly state: string
  readonly network: string
  readonly scheme: string
  readonly principal: string
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly moved: string | null
  readonly inner_hash: string
  readonly ended_by: string | null
  readonly ledger: bigint | null
  readonly fee_charged_stroops: bigint | null
  readonly reason: string | null
  readonly resource: string | null
  readonly identifier: string | null
  readonly action: { readonly kind: string; readonly channel?: string; readonly totals?: Values } | null
  readonly attempts: number
  readonly confirmations: number | null
  readonly closedAt: string | null
  readonly at: string
}

export interface StoredReceipt {
  readonly transaction: string
  readonly network: string
  readonly jws: string
  readonly attestation: string | null
}

export type Wrong = (rule: string, subject: string, detail: string) => void
type Values = Readonly<Record<string, unknown>>

const hashOf = (text: string): string => `sha256:${sha(text).toString("hex")}`
/** Above this length a receipt contains the URL's hash. */
const resourceLengthMax = 256

export const nameOf = ({ epoch, index }: Pick<LeafRow, "epoch" | "index">): string => `leaf ${index} of epoch ${epoch}`

/** Names of members that differ. */
const differing = (said: Values, expected: Values): ReadonlyArray<string> =>
  Object.keys(expected).filter((name) => !isDeepStrictEqual(said[name], expected[name]))

/** Claims that a receipt must have according to a settlement's row. */
const claimsOf = (row: SettlementRow): Values => {
  const isLong = row.resource !== null && row.resource.length > resourceLengthMax
  return {
    network: row.network.replace("ledger:", "stellar:"),
    transaction: row.ended_by ?? row.inner_hash,
    ledger: row.ledger === null ? undefined : Number(row.ledger),
    scheme: row.scheme,
    payer: row.payer,
    payTo: row.payTo,
    asset: row.asset,
    amount: row.moved ?? undefined,
    settlement: row.id,
    attempts: row.attempts,
    fee: String(row.fee_charged_stroops ?? 0n),
    confirmations: row.confirmations ?? undefined,
    closedAt: row.closedAt === null ? undefined : Number(row.closedAt),
    action: row.action?.kind,
    channel: row.action?.channel,
    totals: row.action?.totals,
    resource: isLong ? undefined : (row.resource ?? undefined),
    resourceHash: isLong ? hashOf(row.resource!) : undefined,
    identifierHash: row.identifier === null ? undefined : hashOf(row.identifier)
  }
}

/**
 * Whether a claim is an observation of ours, which may change when a failover loses the outcome and it is recorded
 * again. The receipt that was answered first stays the receipt of its payment.
 */
const isOfLostRecord = (member: string): boolean => member === "attempts" || member === "confirmations"

/** Claims that a receipt must have according to its leaf's record. */
const ofRecord = (record: Values): Values => ({
  v: 1,
  network: record["network"],
  transaction: record["transaction"],
  ledger: record["ledger"],
  amount: record["moved"],
  fee: record["fee"],
  settlement: record["settlement"]
})

export const readClaims = (jws: string): Values | undefined => {
  try {
    return JSON.parse(Buffer.from(jws.split(".")[1] ?? "", "base64url").toString())
  } catch {
    return undefined
  }
}

/** Compares a stored receipt with its row, its leaf, and the settlement. */
const compareReceipt = (
  { attestation, jws, network, transaction }: StoredReceipt,
  { record }: OpenedLeaf,
  row: SettlementRow | undefined,
  issuer: string,
  wrong: Wrong
): void => {
  const report = (members: ReadonlyArray<string>, than: string) =>
    members.forEach((member) => wrong("receipt", transaction, `${member} differs from ${than}`))
  const stored = { receipt: hashOf(jws), attestation: attestation === null ? undefined : hashOf(attestation) }
  report(differing(record, stored), "the stored receipt's hash")
  const claims = readClaims(jws)
  if (claims === undefined) return wrong("receipt", transaction, "its claims cannot be read")
  report(differing(claims, { network, transaction }), "its row's")
  report(differing(claims, { ...ofRecord(record), iss: issuer }), "its leaf's")
  if (row === undefined) return
  for (const member of differing(claims, claimsOf(row)))
    wrong(
      isOfLostRecord(member) ? "receipt of a lost record" : "receipt",
      transaction,
      `${member} differs from the settlement's`
    )
}

export interface Rows {
  readonly settlements: ReadonlyMap<string, SettlementRow>
  /** By transaction. */
  readonly receipts: ReadonlyMap<string, StoredReceipt>
}

/** Compares the leaves of one settlement, in the log's order. True if the database has swept its record. */
export const compareLeaves = (
  leaves: ReadonlyArray<OpenedLeaf>,
  { receipts, settlements }: Rows,
  sides: LogSides,
  issuer: string,
  wrong: Wrong
): boolean => {
  const last = leaves.at(-1)!
  const row = settlements.get(String(last.record.settlement))
  for (const leaf of leaves) {
    const { payTo, payer, principal, transaction } = leaf.row
    const report = (members: ReadonlyArray<string>, than: string) =>
      members.forEach((member) => wrong("leaf", nameOf(leaf.row), `${member} differs from ${than}`))
    report(differing({ transaction }, { transaction: leaf.record.transaction }), "its record's")
    if (row === undefined) continue
    const owners = { principal: row.principal, payer: row.payer, payTo: row.payTo }
    report(differing({ principal, payer, payTo }, owners), "the settlement's")
    if (leaf !== last) continue
    const { network } = claimsOf(row)
    const own = { at: Number(row.at), network, reason: row.reason ?? undefined }
    report(differing(leaf.record, own), "the settlement's")
  }
  const { receipt: logged, transaction } = last.record as Values
  const stored = last.record.outcome === "settled" ? receipts.get(String(transaction)) : undefined
  if (stored !== undefined) compareReceipt(stored, last, row, issuer, wrong)
  else if (logged !== undefined) wrong("receipt", String(transaction), "is logged, but not stored")
  const outcomes = leaves.map(({ record, row }) => ({ ...record, epoch: row.epoch, index: Number(row.index) }))
  return compareOutcome(row, outcomes, sides, wrong)
}
