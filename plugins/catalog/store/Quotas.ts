// Quotas of listings and declarations in a UTC day, counted in the transaction that uses them up. A payer can name any
// recipient. So mere claims count against the payer and the origin that the payment names, verified and settled
// payments separately. They never use up the owner's quota, which only the owner's own declarations use.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Config } from "../Config.ts"
import { makeIsFull } from "./FreeSpace.ts"

/** One payer may use this part (1/n) of an origin's daily quota. */
const payerPart = 8
const subjectMax = 2_200

export interface Claimant {
  readonly payer: string
  readonly payTo: string
  /** The origin that it names, or a symbolic name. */
  readonly place: string
  readonly stage: "verified" | "settled"
  /** Control of the recipient was shown. */
  readonly isOwner: boolean
  /** It cost its payer nothing. */
  readonly isFree: boolean
  readonly now: Date
}

/** The result: taken, used up by the payer itself, or by others for the same origin; `full`: for all free claims. */
export type Share = "taken" | "payer_used_up" | "place_used_up" | "hour_used_up" | "full"

type Taken = Effect.Effect<boolean, SqlError.SqlError>
type Shared = Effect.Effect<Share, SqlError.SqlError>

export class Quotas extends Context.Service<
  Quotas,
  {
    readonly takeListing: (claimant: Claimant) => Shared
    readonly takeBytes: (claimant: Claimant, bytes: number) => Shared
    /** Whether nothing more is listed that was not paid for. */
    readonly isFull: Taken
    /** False when today's quota is used up. */
    readonly takeVersion: (resourceId: bigint, now: Date) => Taken
  }
>()("tollkeeper/catalog/Quotas") {
  static readonly layer = Layer.effect(
    Quotas,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const config = yield* Config
      const isFull = yield* makeIsFull(sql, config.freeBytesMax)

      /** Counts a use of a quota; false, and nothing counted, when today's is used up. */
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

      const takeShares = Effect.fnUntraced(function* (good: string, one: Claimant, max: number, amount = 1) {
        const { isOwner, now, payer, payTo, place, stage } = one
        if (one.isFree && (yield* isFull)) return "full" as const
        if (isOwner) {
          const own = yield* take(`${good} of owner ${payTo}`, now, max, amount)
          return own ? "taken" : ("payer_used_up" as const)
        }
        const part = Math.max(1, Math.floor(max / payerPart))
        if (!(yield* take(`${good} of payer ${payer}`, now, part, amount))) return "payer_used_up" as const
        if (yield* take(`${good}, ${stage}, of ${place}`.slice(0, subjectMax), now, max, amount))
          return "taken" as const
        // A quota used up by others is not counted against this payer.
        yield* take(`${good} of payer ${payer}`, now, max, -amount)
        return "place_used_up" as const
      })

      /** Quota of one payer's free listings in an hour, across all names and recipients in its payments. */
      const takeHour = ({ isFree, now, payer }: Claimant): Taken =>
        isFree
          ? take(`free listings of payer ${payer} at ${now.getUTCHours()}`, now, config.freeListingsPerHourMax)
          : Effect.succeed(true)

      const takeListing = Effect.fnUntraced(function* (claimant: Claimant) {
        const share = yield* takeShares("listings", claimant, config.newResourcesPerDayMax)
        return share !== "taken" || (yield* takeHour(claimant)) ? share : ("hour_used_up" as const)
      })

      return Quotas.of({
        isFull,
        takeListing,
        takeBytes: (claimant, bytes) => takeShares("bytes", claimant, config.declaredBytesPerDayMax, bytes),
        takeVersion: (resourceId, now) => take(`versions ${resourceId}`, now, config.versionsPerDayMax)
      })
    })
  )
}
