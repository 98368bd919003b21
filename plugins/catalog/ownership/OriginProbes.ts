// A probe of a whole origin, on request: its documents are read, each in its own format, and the resources that they
// name are listed by the origin's own words, unverified until a payment for them is observed. So a new seller is found
// before its first sale. The probe actor probes existing listings of the origin again. Bounded for each origin and each
// caller, and never to a private address.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inStatement, inTransaction } from "../../../kernel/database/Database.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { trustedClock } from "../../../kernel/time/trustedTime.ts"
import { BoundedMap } from "../../../kernel/cache/BoundedMap.ts"
import { Config, documentBytesMax } from "../Config.ts"
import type { Declaration, Identity } from "../declaration/Declaration.ts"
import { readResourceUrl } from "../declaration/resourceUrl.ts"
import { Outbound } from "../../../kernel/platform/Outbound.ts"
import { Changes } from "../store/Changes.ts"
import { FirstListings } from "../store/FirstListings.ts"
import { declaredText } from "../store/mergeDeclaration.ts"
import { requestProbesOf } from "../store/Resources.ts"
import { askDomain } from "./domainRecipients.ts"
import { type OriginDocument, OriginDocuments, originsMax } from "./OriginDocuments.ts"
import { OriginMoves } from "./OriginMoves.ts"
import { Origins } from "./Origins.ts"
import {
  type NamedResource,
  readJson,
  readManifest,
  readUnusable,
  readWellKnown,
  type UnusableEntry
} from "./OriginWire.ts"
import { readOpenApi, readUnusableOperations } from "./OpenApiWire.ts"
import { type PricedAsset } from "../pricing.ts"
import { PricedAssets } from "./PricedAssets.ts"
import { Verdicts } from "./Verdicts.ts"

/** Between two probes of one origin. */
const pauseMillis = 60_000
const probesPerCallerMax = 10
const callerMillis = 3_600_000
/** Resources that one probe lists or schedules for another probe, and resources that it requests live pages for. */
const listedMax = 100
const pagesMax = 10

interface Unlisted {
  readonly resource: string
  readonly toolName?: string
  readonly reason: UnlistedReason
}

/**
 * `listed_before`: the catalog already has it, in any state. `no_terms`: neither the documents nor the live page state
 * its price and recipient. `not_asked`: a tool without terms, or beyond the pages that one probe requests.
 * `beyond_limit`: beyond the resources that one probe lists, or the ceiling for unpaid content is reached.
 * `other_origin` and `unreadable_url`: the entry does not name a resource of this origin.
 */
type UnlistedReason = "delisted" | "no_terms" | "not_asked" | "listed_before" | "beyond_limit" | UnusableEntry["reason"]

type ProbeAnswer =
  | { readonly _tag: "Refused"; readonly detail: string }
  | { readonly _tag: "Later"; readonly seconds: number }
  | {
      readonly _tag: "Probed"
      readonly origin: string
      /** Resources of the origin that its documents name. */
      readonly named: number
      /** Resources that were not known before. */
      readonly listed: number
      /** Listings that moved here from other origins. */
      readonly moved: number
      /** Number of the origin's existing listings that were scheduled for a probe. */
      readonly probedAgain: number
      /** Resources that the documents name and that were not listed now, with the reason. */
      readonly unlisted: ReadonlyArray<Unlisted>
      /** The requests made, and their results. */
      readonly asked: string
    }

const writing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const origins = yield* Origins
  const { listOrigin } = yield* FirstListings
  const { asked } = yield* Changes
  const trusted = yield* trustedClock

  /** The words of a named resource: those of the document, or of its live page. */
  const declarationsOf = Effect.fnUntraced(function* (identity: Identity, { methods: named, offers }: NamedResource) {
    if (offers.length > 0) return yield* origins.read(offers)
    const methods = named.length === 0 || named.includes("GET") ? ["GET"] : named.slice(0, 1)
    const answer = yield* origins.ask({ identity, methods, isDynamic: false, share: "claimed" })
    return answer === "later" || answer.word.delisted ? [] : answer.declarations
  })

  const list = Effect.fnUntraced(function* (
    identity: Identity,
    declarations: ReadonlyArray<Declaration>
  ): Effect.fn.Return<UnlistedReason | undefined, SqlError.SqlError> {
    const words = declaredText(declarations, "origin", documentBytesMax(config))
    if (words === undefined) return "no_terms"
    const payTos = [...new Set(declarations.map(({ terms }) => terms.payTo))]
    const now = new Date(yield* trusted)
    const listing = { words: { ...words, identity }, payTos, isPaid: false }
    const listed = yield* Effect.provideService(inTransaction(listOrigin(listing, now)), SqlClient.SqlClient, sql)
    return listed === "listed" ? undefined : listed
  })

  /** Schedules probes of the origin's existing listings: a seller that was counted dead returns when it answers. */
  const probeAgain = Effect.fnUntraced(function* (origin: string) {
    const now = new Date(yield* trusted)
    const requested = yield* inStatement(requestProbesOf(sql, { origin, max: listedMax }, config, now))
    if (requested > 0) yield* asked
    return requested
  })

  return { declarationsOf, list, probeAgain }
})

export class OriginProbes extends Context.Service<
  OriginProbes,
  { readonly probe: (origin: string, caller: string) => Effect.Effect<ProbeAnswer, SqlError.SqlError> }
>()("tollkeeper/catalog/OriginProbes") {
  static readonly layer = Layer.effect(
    OriginProbes,
    Effect.gen(function* () {
      const config = yield* Config
      const documents = yield* OriginDocuments
      const { moved } = yield* Changes
      const { assets } = yield* PricedAssets
      const { applyDomain } = yield* Verdicts
      const moves = yield* OriginMoves
      const outbound = yield* Outbound
      const trusted = yield* trustedClock
      const { declarationsOf, list, probeAgain } = yield* writing
      const mayProbe = boundProbes()

      const probe = Effect.fn("Catalog.probe")(function* (given: string, caller: string) {
        const read = readResourceUrl("http", given, undefined, config)
        if ("_tag" in read) return { _tag: "Refused" as const, detail: read.detail }
        const origin = read.origin!
        const wait = mayProbe(origin, caller, yield* monotonicMillis)
        if (wait > 0) return { _tag: "Later" as const, seconds: Math.ceil(wait / 1_000) }
        const own = yield* documents.wellKnown(origin)
        const others = Effect.all([documents.manifest(origin), documents.openApi(origin)])
        const domain = Effect.provideService(askDomain(origin), Outbound, outbound)
        const [more, stated] = own.isLocal
          ? [[], { payTos: [], detail: "" }]
          : yield* Effect.all([others, domain], { concurrency: 2 })
        const said = [own, ...more]
        const { all, unusable, wellKnown } = readDocuments(said, origin, assets)
        const now = new Date(yield* trusted)
        const movedHere = yield* moves.apply(wellKnown, origin, now)
        if ((yield* applyDomain(origin, stated.payTos, now)) || movedHere.moved > 0) yield* moved
        const probedAgain = yield* probeAgain(origin)
        const named = all.slice(0, listedMax)
        const unlisted: Array<Unlisted> = []
        let pages = 0
        for (const one of named) {
          const { resource, toolName, type } = one
          const identity: Identity = { type, resource, toolName, origin }
          const reason = readWellKnown(wellKnown, identity, origin).delisted
            ? "delisted"
            : one.offers.length === 0 && (type === "mcp" || ++pages > pagesMax)
              ? "not_asked"
              : yield* list(identity, yield* declarationsOf(identity, one))
          if (reason !== undefined) unlisted.push(unlistedOf(one, reason))
        }
        const listed = named.length - unlisted.length
        if (listed > 0) yield* moved
        const detail = `${said.map((one) => one.detail).join(", ")}${stated.detail}${movedHere.detail}`
        unlisted.push(...all.slice(listedMax, 2 * listedMax).map((one) => unlistedOf(one, "beyond_limit")))
        unlisted.push(...unusable.slice(0, listedMax).map((one) => unlistedOf(one, one.reason)))
        const counts = { named: named.length, listed, moved: movedHere.moved, probedAgain }
        return { _tag: "Probed" as const, origin, ...counts, unlisted, asked: detail }
      })

      return OriginProbes.of({ probe })
    })
  )
}

/** Reads the resources of an origin's documents, and the entries that name no valid resource. */
const readDocuments = (
  documents: ReadonlyArray<OriginDocument>,
  origin: string,
  assets: ReadonlyArray<PricedAsset>
): {
  readonly wellKnown: unknown
  readonly all: ReadonlyArray<NamedResource>
  readonly unusable: ReadonlyArray<UnusableEntry>
} => {
  const [wellKnown, manifest, openApi] = documents.map(({ document }) => readJson(document))
  const whole: Identity = { type: "http", resource: `${origin}/`, toolName: "", origin }
  const { payTos } = readWellKnown(wellKnown, whole, origin)
  const manifests = [wellKnown, manifest]
  const named = manifests.flatMap((document) => readManifest(document, origin))
  const unusable = manifests.flatMap((document) => readUnusable(document, origin))
  return {
    wellKnown,
    all: joined([...named, ...readOpenApi(openApi, origin, { assets, payTos })]),
    unusable: distinct([...unusable, ...readUnusableOperations(openApi, origin)])
  }
}

const unlistedOf = ({ resource, toolName }: NamedResource | UnusableEntry, reason: UnlistedReason): Unlisted => ({
  resource,
  ...(toolName === "" ? {} : { toolName }),
  reason
})

/** Removes duplicates across documents and operations. */
const distinct = (all: ReadonlyArray<UnusableEntry>): ReadonlyArray<UnusableEntry> => [
  ...new Map(all.map((one) => [`${one.resource} ${one.toolName}`, one])).values()
]

/** Merges the operations of one resource; the first document that offers it counts. */
const joined = (found: ReadonlyArray<NamedResource>): ReadonlyArray<NamedResource> => {
  const byKey = new Map<string, NamedResource>()
  for (const one of found) {
    const key = `${one.type} ${one.resource} ${one.toolName}`
    const known = byKey.get(key)
    const methods = [...new Set([...(known?.methods ?? []), ...one.methods])]
    byKey.set(key, known === undefined ? one : { ...known, methods, offers: [...known.offers, ...one.offers] })
  }
  return [...byKey.values()]
}

/** Milliseconds to wait before a probe may run; 0 when it may run now. */
const boundProbes = () => {
  const byOrigin = new BoundedMap<string, number>(originsMax)
  const byCaller = new BoundedMap<string, { readonly at: number; count: number }>(originsMax)
  return (origin: string, caller: string, now: number): number => {
    const before = byOrigin.get(origin)
    if (before !== undefined && now - before < pauseMillis) return pauseMillis - (now - before)
    const known = byCaller.get(caller)
    const mine = known === undefined || now - known.at >= callerMillis ? { at: now, count: 0 } : known
    if (mine.count >= probesPerCallerMax) return callerMillis - (now - mine.at)
    mine.count += 1
    byCaller.set(caller, mine)
    byOrigin.set(origin, now)
    return 0
  }
}
