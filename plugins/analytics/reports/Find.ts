// Searches by one word: a settlement by its hash, id or payment identifier, an account or contract (each also by its
// beginning or its ends), an amount, a reason, an asset by its symbol, a resource by a part of its URL or by its
// seller's name, an origin, a key. Each kind is a bounded read of an index, the most exact kind first. Payers and
// recipients are redacted as in every other report.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { neutralReason } from "../../../kernel/Dialect.ts"
import { explainReason } from "../../../kernel/payment/reasons.ts"
import { Schemes } from "../../../kernel/payment/Scheme.ts"
import { findByIdentifier } from "../../../kernel/settlement/operators/findByIdentifier.ts"
import { CatalogRecords } from "../../catalog/contract.ts"
import type { Found } from "./ListWire.ts"
import { Spelling } from "./Spelling.ts"

type Item = (typeof Found.Type)["items"][number]

const kindMax = 6

const isHash = /^[0-9a-f]{64}$/
const isId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const isAddress = /^(?:[GC][A-Z2-7]{55}|M[A-Z2-7]{68}|p_[0-9a-f]{24})$/
/** The beginning of a hash or address, long enough not to be a word. */
const isHashStart = /^[0-9a-f]{6,63}$/
const isAddressStart = /^[GCM][A-Z2-7]{4,68}$/
/** The beginning of an id, at least its first group. */
const isIdStart = /^[0-9a-f]{8}[0-9a-f-]{0,27}$/

/** Maximum number of labels tried, from the first possible match on. */
const labelsMax = 200
/** Letters of the longest address. */
const addressMax = 69

/** The last text with this beginning: in hex digits and in base32 every collation sorts a digit before a letter. */
const lastHash = (start: string): string => start.padEnd(64, "f")
const lastAddress = (start: string): string => start.padEnd(addressMax, "Z")

const idOf = (start: string, digit: "0" | "f"): string =>
  start + "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".slice(start.length).replaceAll("x", digit)

/** A hash or an address as pages shorten it, by its ends: `3f2a91…c0ffee`, or with dots. */
const endsOf = (query: string): readonly [start: string, end: string] => {
  const [, start, end] = /^([0-9A-Za-z]{4,64})(?:…|[.]{2,3})([0-9A-Za-z]{4,64})$/.exec(query) ?? []
  return start === undefined || end === undefined ? [query, ""] : [start, end]
}

interface SettlementFound {
  readonly transaction_hash: string
  readonly status: string
  readonly occurred_at: Date
}

/** Display names for the states of reports and of the kernel. */
const stateWords: Readonly<Record<string, string>> = {
  success: "settled",
  unknown: "pending",
  open: "pending",
  prepared: "pending",
  submitted: "pending"
}

const minuteOf = (at: Date): string => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`

const findSettlements = Effect.fnUntraced(function* (query: string) {
  const sql = yield* SqlClient.SqlClient
  const [prefix, end] = endsOf(query.toLowerCase())
  const ids = [idOf(prefix, "0"), idOf(prefix, "f")] as const
  const conditions = [
    ...(isIdStart.test(prefix) && ids.every((id) => isId.test(id))
      ? [sql`id >= ${ids[0]}::uuid and id <= ${ids[1]}::uuid`]
      : []),
    ...(isId.test(prefix) ? [sql`id = ${prefix}::uuid`] : []),
    ...(isHash.test(prefix) || isHashStart.test(prefix)
      ? [
          sql`transaction_hash >= ${prefix} and transaction_hash <= ${lastHash(prefix)}
          and right(transaction_hash, ${end.length}) = ${end}`
        ]
      : [])
  ]
  // Each query uses its own index.
  const rows = yield* Effect.forEach(
    conditions,
    (condition) =>
      sql<SettlementFound>`select transaction_hash, status, occurred_at from analytics_settlements
      where ${condition} limit ${kindMax}`.unprepared
  )
  return rows.flat().map((row): Item => ({
    kind: "settlement",
    id: row.transaction_hash,
    title: row.transaction_hash,
    note: `${stateWords[row.status] ?? row.status}, ${minuteOf(row.occurred_at)}`
  }))
})

/**
 * By the exact identifier that the caller sent. The kernel stores it, so the settlement is found even before analytics
 * has recorded it.
 */
const findIdentified = (query: string) =>
  Effect.map(findByIdentifier(query, kindMax), (settlements) =>
    settlements.map(({ innerHash, recordedAt, state }): Item => ({
      kind: "settlement",
      id: innerHash,
      title: query,
      note: `payment identifier, ${stateWords[state] ?? state}, ${minuteOf(recordedAt)}`
    }))
  )

const roleWords: Readonly<Record<string, string>> = { buyer: "payer", seller: "recipient" }

const findAccounts = Effect.fnUntraced(function* (query: string) {
  const sql = yield* SqlClient.SqlClient
  const { amounts, redaction } = yield* Spelling
  const [start, end] = endsOf(query)
  const prefix = query.startsWith("p_") ? query : start.toUpperCase()
  // With redaction, the beginning of an address must not lead to the pseudonyms of all addresses with that beginning.
  const isRedacted = redaction.show(prefix) !== prefix
  if (!isAddress.test(prefix) && (isRedacted || !isAddressStart.test(prefix))) return []
  const resolved = Option.getOrElse(yield* redaction.resolve(prefix), () => prefix)
  const rows = yield* sql<{ name: string; roles: ReadonlyArray<string> }>`select name, array_agg(kind) as roles
    from analytics_members where kind in ('buyer', 'seller') and name >= ${resolved}
      and name <= ${lastAddress(resolved)} and right(name, ${end.length}) = ${end.toUpperCase()}
    group by name limit ${kindMax}`.unprepared
  const assets = yield* sql<{ asset: string }>`select distinct asset from analytics_totals
    where width = 'day' and asset >= ${resolved} and asset <= ${lastAddress(resolved)}
      and right(asset, ${end.length}) = ${end.toUpperCase()} limit ${kindMax}`.unprepared
  return [
    ...assets.map(({ asset }): Item => ({
      kind: "asset",
      id: asset,
      title: amounts.name(asset).asset_symbol ?? asset,
      note: "asset"
    })),
    ...rows.map(({ name, roles }): Item => ({
      kind: "account",
      id: redaction.show(name),
      title: redaction.show(name),
      note: roles.map((role) => roleWords[role] ?? role).join(" and ")
    }))
  ]
})

/** A configured asset by its symbol. */
const findSymbols = Effect.fnUntraced(function* (query: string) {
  const { amounts } = yield* Spelling
  return amounts.called(query).map((asset): Item => ({
    kind: "asset",
    id: asset,
    title: amounts.name(asset).asset_symbol ?? asset,
    note: "asset"
  }))
})

const findResources = Effect.fnUntraced(function* (query: string) {
  const resources = yield* (yield* CatalogRecords).find({ words: query, limit: kindMax })
  const title = ({ resource, serviceName, toolName }: (typeof resources)[number]) =>
    toolName === "" ? (serviceName ?? resource) : toolName
  const origins = [...new Set(resources.flatMap(({ origin }) => (origin === null ? [] : [origin])))]
  return [
    ...resources.map((one): Item => ({
      kind: "resource",
      id: one.id.toString(),
      title: title(one),
      note: one.resource
    })),
    ...origins.map((origin): Item => ({ kind: "origin", id: origin, title: origin, note: "listings and settlements" }))
  ]
})

/**
 * There are few labels: each is one step along the index. Labels with this beginning come first, then labels that
 * contain the words.
 */
const findKeys = Effect.fnUntraced(function* (query: string) {
  const sql = yield* SqlClient.SqlClient
  if (!/^[\w.:/-]{1,128}$/.test(query)) return []
  const fragment = query.toLowerCase()
  const labelsFrom = (first: string) =>
    sql<{ principal: string }>`with recursive label as (
      (select principal, 1 as step from analytics_settlements where principal >= ${first} and status <> 'open'
        order by principal limit 1)
      union all
      select (select s.principal from analytics_settlements s where s.principal > label.principal
        and s.status <> 'open' order by s.principal limit 1), step + 1
      from label where label.principal is not null and step < ${labelsMax}
    ) select principal from label where position(${fragment} in lower(principal)) > 0`.unprepared
  const rows = (yield* Effect.forEach([query, `key:${query}`, ""], labelsFrom)).flat()
  const begins = (label: string): boolean => label.toLowerCase().replace(/^key:/, "").startsWith(fragment)
  return [...new Set(rows.map(({ principal }) => principal))]
    .sort((a, b) => Number(begins(b)) - Number(begins(a)))
    .slice(0, kindMax)
    .map((principal): Item => ({ kind: "key", id: principal, title: principal, note: "usage and settlements" }))
})

/** Minimum letters to search for a part of a reason; shorter parts match most reasons. */
const reasonLettersMin = 4

/** By a part of the code, in either spelling, or of its label. */
const findReasons = Effect.fnUntraced(function* (query: string) {
  const reasonText = neutralReason(query.toLowerCase().trim())
  if (reasonText.length < reasonLettersMin || !/^[a-z][a-z0-9_ ]*$/.test(reasonText)) return []
  const explained = (yield* Schemes).reasons().map(explainReason)
  const exact = explained.filter(({ reason }) => reason === reasonText)
  const near = explained.filter(
    ({ label, reason }) =>
      reason !== reasonText && (reason.includes(reasonText) || label.toLowerCase().includes(reasonText))
  )
  return [...exact, ...near]
    .slice(0, kindMax)
    .map(({ reason, sentence }): Item => ({ kind: "reason", id: reason, title: reason, note: sentence }))
})

/**
 * An amount in decimal notation, with its asset's symbol or for each asset: the newest settlements with that amount.
 */
const findAmounts = Effect.fnUntraced(function* (query: string) {
  const written = /^(\d{1,20})(?:[.](\d{1,18}))?(?: ?([A-Za-z][A-Za-z0-9]{0,11}))?$/
  const [, whole, part = "", symbol] = written.exec(query.trim()) ?? []
  if (whole === undefined) return []
  const sql = yield* SqlClient.SqlClient
  const { amounts } = yield* Spelling
  const assets = symbol === undefined ? amounts.all() : amounts.called(symbol)
  const rows = yield* Effect.forEach(assets, (asset) => {
    const { asset_decimals: decimals, asset_symbol: name } = amounts.name(asset)
    if (decimals === null || part.length > decimals) return Effect.succeed([])
    const units = BigInt(whole + part.padEnd(decimals, "0")).toString()
    return Effect.map(
      sql<SettlementFound>`select transaction_hash, status, occurred_at from analytics_settlements
        where asset = ${asset} and amount_meant = ${units}::numeric and status <> 'open'
        order by id desc limit ${kindMax}`.unprepared,
      (rows) =>
        rows.map((row): Item => ({
          kind: "settlement",
          id: row.transaction_hash,
          title: row.transaction_hash,
          note:
            `${query.replace(/ ?[A-Za-z].*$/, "")} ${name ?? "units"}, ${stateWords[row.status] ?? row.status}, ` +
            minuteOf(row.occurred_at)
        }))
    )
  })
  return rows.flat().slice(0, kindMax)
})

const find = Effect.fn("Find.find")(function* (query: string) {
  const itemsByKind = yield* Effect.all([
    findSettlements(query),
    findIdentified(query),
    findAccounts(query),
    findSymbols(query),
    findResources(query),
    findKeys(query),
    findReasons(query),
    findAmounts(query)
  ])
  return { items: itemsByKind.flat() } satisfies typeof Found.Type
})

export class Find extends Context.Service<
  Find,
  { readonly find: (query: string) => Effect.Effect<typeof Found.Type, SqlError.SqlError> }
>()("tollkeeper/analytics/Find") {
  static readonly layer = Layer.effect(
    Find,
    Effect.map(Effect.context<SqlClient.SqlClient | Spelling | CatalogRecords | Schemes>(), (services) =>
      Find.of({ find: (query) => Effect.provideContext(find(query), services) })
    )
  )
}
