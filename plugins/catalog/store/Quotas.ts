// What may be listed and declared in a UTC day, counted in the transaction that uses it up. The payer's share comes
// first, and is less: whoever pays can name any recipient, and must not use up by itself what that one may list.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Config } from "../Config.ts"

/** One payer's part of what a recipient may list in a day. */
const payerPart = 8

export interface Claimant {
  readonly payer: string
  readonly payTo: string
  readonly now: Date
}

type Taken = Effect.Effect<boolean, SqlError.SqlError>

export class Quotas extends Context.Service<
  Quotas,
  {
    /** Each takes its good and is true, or is false when today's are used up. */
    readonly takeListing: (claimant: Claimant) => Taken
    readonly takeBytes: (claimant: Claimant, bytes: number) => Taken
    readonly takeVersion: (resourceId: bigint, now: Date) => Taken
  }
>()("tollkeeper/catalog/Quotas") {
  static readonly layer = Layer.effect(
    Quotas,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const config = yield* Config

      /** Counts a use of a bounded good; false, and nothing counted, when today's are used up. */
      const take = (subject: string, now: Date, max: number, amount = 1): Taken =>
        amount > max
          ? Effect.succeed(false)
          : Effect.map(
              sql`insert into catalog_quotas (day, subject, used)
                  values (${now.toISOString().slice(0, 10)}::date, ${subject}, ${amount})
                on conflict (day, subject) do update set used = catalog_quotas.used + excluded.used
                  where catalog_quotas.used + excluded.used <= ${max} returning 1`,
              (rows) => rows.length > 0
            )

      /** The payer's share is spent also when the recipient's is used up. */
      const takeShares = Effect.fnUntraced(function* (
        good: string,
        { now, payer, payTo }: Claimant,
        max: number,
        amount = 1
      ) {
        return (
          (yield* take(`${good} of payer ${payer}`, now, Math.max(1, Math.floor(max / payerPart)), amount)) &&
          (yield* take(`${good} for recipient ${payTo}`, now, max, amount))
        )
      })

      return Quotas.of({
        takeListing: (claimant) => takeShares("listings", claimant, config.newResourcesPerDayMax),
        takeBytes: (claimant, bytes) => takeShares("bytes", claimant, config.declaredBytesPerDayMax, bytes),
        takeVersion: (resourceId, now) => take(`versions ${resourceId}`, now, config.versionsPerDayMax)
      })
    })
  )
}
