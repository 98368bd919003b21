// Addresses of payers and recipients in answers: as they are, or as a pseudonym that stays the same, names nobody, and
// leads on to the address's own reports. The key of the pseudonyms is made once and kept in the database, so that
// replicas agree. Hashes and URLs are never touched (S138, S139, S297).
import { Effect, Option } from "effect"
import { Hex } from "effect/encoding"
import type { SqlClient } from "effect/sql"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"

const encoder = new TextEncoder()
const accounts = /\b(?:G[A-Z2-7]{55}|M[A-Z2-7]{68})\b/g
/** Members of JSON that hold addresses and nothing else, contracts too. */
const addressKeys = new Set(["payTo", "payTos", "pay_to", "pay_tos", "payer"])

export const makePseudonyms = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, crypto: Crypto["Service"]) {
  yield* sql`insert into analytics_secrets (name, secret) values ('pseudonyms', ${Hex.encode(crypto.randomBytes(32))}) on conflict do nothing`
  const [row] = yield* sql<{ secret: string }>`select secret from analytics_secrets where name = 'pseudonyms'`
  const key = encoder.encode(row!.secret)
  return (address: string): string => `p_${Hex.encode(crypto.hmacSha256(key, encoder.encode(address)).slice(0, 12))}`
})

export interface Redaction {
  readonly show: (address: string) => string
  /** Addresses anywhere in a JSON value. */
  readonly clean: (value: unknown) => unknown
  /** The address behind what was asked for; None for a pseudonym of nobody. */
  readonly resolve: (asked: string) => Effect.Effect<Option.Option<string>, import("effect/sql").SqlError.SqlError>
}

export const makeRedaction = (
  sql: SqlClient.SqlClient,
  pseudonymOf: (address: string) => string,
  redact: boolean
): Redaction => {
  const show = (address: string): string => (redact ? pseudonymOf(address) : address)
  const walk = (value: unknown, key: string): unknown => {
    if (typeof value === "string")
      return addressKeys.has(key) ? show(value) : value.includes("://") ? value : value.replace(accounts, show)
    if (Array.isArray(value)) return value.map((item) => walk(item, key))
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, walk(item, name)]))
  }
  return {
    show,
    clean: (value) => (redact ? walk(value, "") : value),
    resolve: Effect.fnUntraced(function* (asked) {
      if (!asked.startsWith("p_")) return Option.some(asked)
      const [row] = yield* sql<{ name: string }>`select name from analytics_members where pseudonym = ${asked} limit 1`
      return Option.map(Option.fromUndefinedOr(row), ({ name }) => name)
    })
  }
}
