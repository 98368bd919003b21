// Addresses of payers and recipients in answers: plain, or as pseudonyms, by the settings. Hashes and URLs are never
// redacted (S138, S139, S297).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Config } from "../Config.ts"
import { Pseudonyms } from "../recording/Pseudonyms.ts"

const accounts = /\b(?:G[A-Z2-7]{55}|M[A-Z2-7]{68})\b/g
/** JSON members that hold only addresses, contracts' included. */
const addressKeys = new Set(["payTo", "payTos", "pay_to", "pay_tos", "payer"])

/** Maps every address in a JSON value. */
const traverse = (show: (address: string) => string, value: unknown, key: string): unknown => {
  if (typeof value === "string")
    return addressKeys.has(key) ? show(value) : value.includes("://") ? value : value.replace(accounts, show)
  if (Array.isArray(value)) return value.map((item) => traverse(show, item, key))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, traverse(show, item, name)]))
}

export class Redaction extends Context.Service<
  Redaction,
  {
    readonly show: (address: string) => string
    /** Addresses anywhere in a JSON value. */
    readonly clean: <A>(value: A) => A
    /** The address behind the parameter; None for an unknown pseudonym. */
    readonly resolve: (addressOrPseudonym: string) => Effect.Effect<Option.Option<string>, SqlError.SqlError>
  }
>()("tollkeeper/analytics/Redaction") {
  static readonly layer = Layer.effect(
    Redaction,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { redactAddresses } = yield* Config
      const { pseudonymOf } = yield* Pseudonyms
      return Redaction.of({
        show: (address) => (redactAddresses ? pseudonymOf(address) : address),
        clean: (value) => (redactAddresses ? (traverse(pseudonymOf, value, "") as typeof value) : value),
        resolve: Effect.fnUntraced(function* (addressOrPseudonym) {
          if (!addressOrPseudonym.startsWith("p_")) return Option.some(addressOrPseudonym)
          const [row] = yield* sql<{ name: string }>`select name from analytics_members
            where pseudonym = ${addressOrPseudonym} limit 1`
          return Option.map(Option.fromUndefinedOr(row), ({ name }) => name)
        })
      })
    })
  )
}
