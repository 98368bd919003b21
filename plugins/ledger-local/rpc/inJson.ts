// Answers with their XDR as JSON (SEP-51), for requests with `xdrFormat: "json"`: the same answer, with each encoded
// field in place of its base64 under the name that Stellar RPC gives it. Fields that the real RPC does not leave out
// (`headerXdr`, `metadataXdr`, a state change's `before` and `after`) are empty or null then, as there.
import * as xdr from "@stellar/stellar-sdk/xdr"
import { fromBase64 } from "../node/text.ts"

/** Turns a base64 text, or lists of them, into JSON. */
type Decode = (value: unknown) => unknown

interface Field {
  readonly as: string
  readonly decode: Decode
  /** The remaining value under the old name; absent: the field is removed. */
  readonly leaves?: "" | null
}

/** How the fields of an object change: encoded ones by `Field`, others by the rule for their content. */
interface Rule {
  readonly [name: string]: Field | Rule
}

interface Readable {
  readonly fromXdr: (bytes: Uint8Array) => { readonly toJson: () => unknown }
}

/**
 * The SDK has a field `type`. The RPC's converter (`@stellar/stellar-xdr-json` 27, made from Rust, where the word is
 * reserved) has `type_`, and the SDK reads both. No key of a response comes from a user.
 */
const asInRust = (json: unknown): unknown => {
  if (Array.isArray(json)) return json.map(asInRust)
  if (typeof json !== "object" || json === null) return json
  return Object.fromEntries(
    Object.entries(json).map(([name, inner]) => [name === "type" ? "type_" : name, asInRust(inner)])
  )
}

const decodeOf = (type: Readable): Decode => {
  const decode: Decode = (value) => {
    if (value === null) return null
    if (Array.isArray(value)) return value.map(decode)
    const bytes = fromBase64(String(value))
    if (bytes === undefined) throw new Error("an answer holds what is not base64")
    return asInRust(type.fromXdr(bytes).toJson())
  }
  return decode
}

const field = (as: string, type: Readable, leaves?: "" | null): Field => ({
  as,
  decode: decodeOf(type),
  ...(leaves === undefined ? {} : { leaves })
})

const ledger: Rule = {
  headerXdr: field("headerJson", xdr.LedgerHeaderHistoryEntry, ""),
  metadataXdr: field("metadataJson", xdr.LedgerCloseMeta, "")
}

const diagnostics = field("diagnosticEventsJson", xdr.DiagnosticEvent)

const transaction: Rule = {
  envelopeXdr: field("envelopeJson", xdr.TransactionEnvelope),
  resultXdr: field("resultJson", xdr.TransactionResult),
  resultMetaXdr: field("resultMetaJson", xdr.TransactionMeta),
  diagnosticEventsXdr: diagnostics,
  events: {
    transactionEventsXdr: field("transactionEventsJson", xdr.TransactionEvent),
    contractEventsXdr: field("contractEventsJson", xdr.ContractEvent)
  }
}

const resources: Rule = { transactionData: field("transactionDataJson", xdr.SorobanTransactionData) }

const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ["getTransaction", transaction],
  ["getTransactions", { transactions: transaction }],
  ["getLedgers", { ledgers: ledger }],
  ["getLatestLedger", { ...ledger, headerXdr: field("headerJson", xdr.LedgerHeader, "") }],
  [
    "getLedgerEntries",
    {
      entries: {
        key: field("keyJson", xdr.LedgerKey),
        xdr: field("dataJson", xdr.LedgerEntryData),
        extXdr: field("extJson", xdr.LedgerEntryExt)
      }
    }
  ],
  ["getEvents", { events: { topic: field("topicJson", xdr.ScVal), value: field("valueJson", xdr.ScVal) } }],
  [
    "sendTransaction",
    { errorResultXdr: field("errorResultJson", xdr.TransactionResult), diagnosticEventsXdr: diagnostics }
  ],
  [
    "simulateTransaction",
    {
      ...resources,
      events: field("eventsJson", xdr.DiagnosticEvent),
      results: {
        auth: field("authJson", xdr.SorobanAuthorizationEntry),
        xdr: field("returnValueJson", xdr.ScVal)
      },
      restorePreamble: resources,
      stateChanges: {
        key: field("keyJson", xdr.LedgerKey),
        before: field("beforeJson", xdr.LedgerEntry, null),
        after: field("afterJson", xdr.LedgerEntry, null)
      }
    }
  ]
])

const isField = (rule: Field | Rule): rule is Field => typeof rule["decode"] === "function"

const changed = (value: unknown, rule: Rule): unknown => {
  if (Array.isArray(value)) return value.map((one) => changed(one, rule))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]): ReadonlyArray<readonly [string, unknown]> => {
      const change = rule[name]
      if (change === undefined) return [[name, inner]]
      if (!isField(change)) return [[name, changed(inner, change)]]
      const left = change.leaves === undefined ? [] : [[name, change.leaves] as const]
      return inner === null ? left : [...left, [change.as, change.decode(inner)]]
    })
  )
}

/** The response of a method in JSON; unchanged for a method without such a form. */
export const inJson = (method: string, result: unknown): unknown => {
  const rule = rules.get(method)
  return rule === undefined ? result : changed(result, rule)
}

/** A contract value of its JSON. Throws on anything else. */
export const scValOfJson = (json: unknown): xdr.ScValWire => xdr.ScVal.fromJson(json as never).toXdrObject()
