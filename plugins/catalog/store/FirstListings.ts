// The first declaration of a resource lists it, provisionally owned by its recipient, within the day's quotas, and
// requests a probe of the origin. One authorization of a payer lists one resource. Any further resource of it is only
// an observation. If others have used up the daily quota of an origin, we do not refuse the declaration: we ask the
// origin itself and list its offer.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Config } from "../Config.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { Changes } from "./Changes.ts"
import { mergeDeclaration, type DeclaredText } from "./mergeDeclaration.ts"
import { Quotas, type Share } from "./Quotas.ts"
import { awaitsOrigin, type Carrier, claimantOf, isFree, oversizedOf, type Recorded, unavailable } from "./Recorded.ts"
import { type Actor, recordMove, requestProbe, publishChange } from "./Resources.ts"
import { Versions } from "./Versions.ts"

interface OriginListing {
  readonly words: DeclaredText
  /** The recipients that the origin names; not empty. */
  readonly payTos: ReadonlyArray<string>
  /** A payment for it has been observed. */
  readonly isPaid: boolean
}

/** Why a resource is listed, and whether its payer's claim cost anything. */
interface Beginning {
  readonly by: Actor
  readonly isFree: boolean
  readonly now: Date
  readonly reason: string
}

const refused = (share: Share, good: string): Recorded =>
  share === "full"
    ? unavailable("the catalog lists only what was paid for until it has room (catalog_security.free_bytes_max)")
    : share === "payer_used_up"
      ? unavailable(`today's ${good} are used up`)
      : share === "hour_used_up"
        ? awaitsOrigin("one payer's hourly limit of listings by payments that are only verified is used up")
        : awaitsOrigin(`the origin's daily limit of claims, ${good}, is used up`)

export class FirstListings extends Context.Service<
  FirstListings,
  {
    /** In the caller's transaction; undefined when another transaction listed it in the meantime. */
    readonly list: (
      declaration: Declaration,
      carrier: Carrier
    ) => Effect.Effect<Recorded | undefined, SqlError.SqlError>
    /** Like `list`, with the origin's own words. `beyond_limit`: the ceiling for unpaid content is reached. */
    readonly listOrigin: (
      listing: OriginListing,
      now: Date
    ) => Effect.Effect<"listed" | "listed_before" | "beyond_limit", SqlError.SqlError>
  }
>()("tollkeeper/catalog/FirstListings") {
  static readonly layer = Layer.effect(
    FirstListings,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const config = yield* Config
      const quotas = yield* Quotas
      const { asked } = yield* Changes
      const versions = yield* Versions

      const begin = Effect.fnUntraced(function* (id: bigint, { by, isFree, now, reason }: Beginning) {
        yield* sql`insert into catalog_activity ${sql.insert({ resource_id: id, last_seen_at: now })}`
        yield* recordMove(sql, id, now, { by, move: "listed", from: null, to: "active", reason })
        yield* requestProbe(sql, id, config, { isFree, now })
        yield* asked
        yield* publishChange(facts, id, "listed")
      })

      const listed = Effect.fnUntraced(function* (declaration: Declaration, carrier: Carrier) {
        const { grade, now, stage } = carrier
        const claimant = claimantOf(declaration, carrier)
        const words = { ...mergeDeclaration(undefined, declaration, grade), isFree: isFree(carrier) }
        const { document, hash } = versions.bodyOf(words)
        const oversized = oversizedOf(document, config)
        if (oversized !== undefined) return oversized
        const listing = yield* quotas.takeListing(claimant)
        if (listing !== "taken") return refused(listing, "new listings")
        const bytes = yield* quotas.takeBytes(claimant, document.length)
        if (bytes !== "taken") return refused(bytes, "bytes")
        const isListable = config.indexOn === "verified" || stage === "settled"
        const id = yield* versions.insert(
          words,
          {
            verification: isListable ? "payment_observed" : "unverified",
            ownership: "provisional",
            pay_tos: [declaration.terms.payTo],
            listed_by: isFree(carrier) ? carrier.payer : null
          },
          now
        )
        if (id === undefined) return undefined
        yield* begin(id, { by: "facilitator", isFree: isFree(carrier), now, reason: "payment_observed" })
        return { decision: isListable ? "listed" : "held", resourceId: id, versionHash: hash, claim: hash } as Recorded
      })

      /**
       * Lists if the authorization has listed nothing before; if nothing is listed, the authorization is not used up.
       */
      const list = Effect.fnUntraced(function* (declaration: Declaration, carrier: Carrier) {
        const authorization = Option.getOrUndefined(carrier.authorization())
        if (authorization === undefined) return yield* listed(declaration, carrier)
        const taken = yield* sql`insert into catalog_authorizations
          ${sql.insert({ authorization_key: authorization, at: carrier.now })} on conflict do nothing returning 1`
        if (taken.length === 0) return awaitsOrigin("the payment's authorization has listed another resource")
        const recorded = yield* listed(declaration, carrier)
        if (recorded?.resourceId === undefined)
          yield* sql`delete from catalog_authorizations where authorization_key = ${authorization}`
        return recorded
      })

      const listOrigin = Effect.fnUntraced(function* ({ isPaid, payTos, words }: OriginListing, now: Date) {
        if (yield* quotas.isFull) return "beyond_limit" as const
        const verification = isPaid ? "payment_observed" : "unverified"
        const owned = { verification, ownership: "proven", pay_tos: payTos, listed_by: null } as const
        const id = yield* versions.insert(words, owned, now)
        if (id === undefined) return "listed_before" as const
        yield* begin(id, { by: "origin", isFree: false, now, reason: "origin_names_owner" })
        return "listed" as const
      })

      return FirstListings.of({ list, listOrigin })
    })
  )
}
