// Principals that control a recipient, by the settings or by a challenge that the recipient's account signed. Such a
// principal's payments to that recipient carry `declared` words; all others carry `claimed` words. A caller without a
// key cannot do either: only keys have a principal. A binding that another replica stored arrives within seconds.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Principal } from "../../../kernel/http/Authentication.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { Config } from "../Config.ts"
import type { Carrier } from "../store/Recorded.ts"

const knownMillis = 5_000
const knownMax = 20_000
const boundMax = 1_000

export class Recipients extends Context.Service<
  Recipients,
  {
    /** The grade of a payment's declaration to this recipient under this principal; `claimed` on a database error. */
    readonly gradeOf: (principal: Principal, payTo: string) => Effect.Effect<Carrier["grade"]>
    /** The same, from the cache only. */
    readonly knownGradeOf: (principal: Principal, payTo: string, now: number) => Carrier["grade"] | undefined
    /** Stores that the recipient is this principal's; false when it has too many. */
    readonly bind: (principal: Principal, payTo: string) => Effect.Effect<boolean, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Recipients") {
  static readonly layer = Layer.effect(
    Recipients,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { recipients } = yield* Config
      const known = new LruCache<string, { readonly isBound: boolean; readonly at: number }>({
        name: "recipients",
        capacity: knownMax
      })
      const keyOf = (owner: string, payTo: string) => `${owner} ${payTo}`

      const isBySettings = (owner: string, payTo: string): boolean =>
        recipients[owner.replace(/^key:/, "")]?.includes(payTo) === true

      const cache = (key: string, isBound: boolean, at: number): void => known.set(key, { isBound, at })

      const isBound = Effect.fnUntraced(function* (owner: string, payTo: string, now: number) {
        const key = keyOf(owner, payTo)
        const rows = yield* sql`select 1 from catalog_recipients where principal = ${owner} and pay_to = ${payTo}`
        cache(key, rows.length > 0, now)
        return rows.length > 0
      })

      const knownGradeOf = (principal: Principal, payTo: string, now: number): Carrier["grade"] | undefined => {
        if (!principal.keyed) return "claimed"
        if (isBySettings(principal.owner, payTo)) return "declared"
        // A clock that was set back invalidates the entry.
        const isValid = ({ at }: { readonly at: number }) => now >= at && now - at < knownMillis
        const before = known.get(keyOf(principal.owner, payTo), isValid)
        if (before === undefined) return undefined
        return before.isBound ? "declared" : "claimed"
      }

      const gradeOf = Effect.fnUntraced(function* (principal: Principal, payTo: string) {
        const now = yield* Clock.currentTimeMillis
        const known = knownGradeOf(principal, payTo, now)
        if (known !== undefined) return known
        return yield* isBound(principal.owner, payTo, now).pipe(
          Effect.map((bound): Carrier["grade"] => (bound ? "declared" : "claimed")),
          Effect.catch((error) =>
            Effect.as(Effect.logWarning("recipients could not be read", error), "claimed" as const)
          )
        )
      })

      const bind = Effect.fnUntraced(function* ({ owner }: Principal, payTo: string) {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* sql`insert into catalog_recipients (principal, pay_to, shown_at)
          select ${owner}, ${payTo}, ${new Date(now)}
          where (select count(*) from catalog_recipients where principal = ${owner}) < ${boundMax}
          on conflict (principal, pay_to) do update set shown_at = excluded.shown_at returning 1`
        if (rows.length > 0) cache(keyOf(owner, payTo), true, now)
        return rows.length > 0
      })

      return Recipients.of({ gradeOf, knownGradeOf, bind })
    })
  )
}
