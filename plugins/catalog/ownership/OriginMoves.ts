// A seller moves from one origin to another and keeps its listings, with their evidence, counts and versions. The new
// origin's `/.well-known/x402` names the old one in `movedFrom`, with a signature by the account that the listings pay.
// The old origin's document names the new one in `movedTo`, unless that origin is gone. The evidence
// stays behind if the domain has a new owner without the key, or if the key was stolen without the origin. A redirect
// is not a statement. A listing is moved, never copied; a signature is void after a week, and for a listing that a
// newer one has moved.
import { Context, Data, Effect, Layer, Result } from "effect"
import { Base64 } from "effect/encoding"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { Network } from "../../../kernel/config/Network.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { isSignedText } from "../../../kernel/ledger/isSignedText.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import type { Identity } from "../declaration/Declaration.ts"
import { isFields } from "../fields.ts"
import type { DeclaredText } from "../store/mergeDeclaration.ts"
import { liveOptions, lockResource, moveState, requestProbe, type ResourceRow } from "../store/Resources.ts"
import { identityKey } from "../store/ResourceWire.ts"
import { Versions } from "../store/Versions.ts"
import { OriginDocuments } from "./OriginDocuments.ts"
import { readJson } from "./OriginWire.ts"

/** Moves of one document, and listings of one move. */
const movesMax = 4
const listingsMax = 100
const lifeMillis = 7 * 86_400_000
/** How far a seller's clock may be ahead. */
const aheadMillis = 300_000

interface Move {
  readonly from: string
  readonly to: string
  readonly payTo: string
  /** As the document has it. */
  readonly signedAt: string
  readonly signature: string
}

/** The text that the recipient's account signs (SEP-53). */
export const moveText = ({ from, payTo, signedAt, to }: Omit<Move, "signature">, network: string): string =>
  `Tollkeeper: the listings that pay ${payTo} on ${network} move from ${from} to ${to}, signed at ${signedAt}`

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/

const isOrigin = (value: unknown): value is string =>
  typeof value === "string" && URL.canParse(value) && new URL(value).origin === value

const readMoves = (document: unknown, to: string): ReadonlyArray<Move> => {
  const named = isFields(document) ? document["movedFrom"] : undefined
  return (Array.isArray(named) ? named.slice(0, movesMax) : []).flatMap((entry) => {
    if (!isFields(entry)) return []
    const { origin, payTo, signature, signedAt } = entry
    if (!isOrigin(origin) || origin === to || typeof payTo !== "string" || typeof signature !== "string") return []
    if (typeof signedAt !== "string" || !timeForm.test(signedAt)) return []
    return [{ from: origin, to, payTo, signedAt, signature }]
  })
}

/** Why nothing moved, for the answer to the caller. Rolls the transaction back. */
class Refused extends Data.TaggedError("MoveRefused")<{ readonly detail: string }> {}
const refuse = (detail: string) => Effect.fail(new Refused({ detail }))

interface MovesAnswer {
  readonly moved: number
  /** For the answer to the caller; empty if the document names no move. */
  readonly detail: string
}

/** Moves one listing in the caller's transaction; false if the new origin has another seller's listing there. */
const rehoming = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const facts = yield* Facts
  const config = yield* Config
  const versions = yield* Versions

  const identityAt = ({ resource, tool_name: toolName, type }: ResourceRow, from: string, to: string): Identity => ({
    type,
    resource: to + resource.slice(from.length),
    toolName,
    origin: to
  })

  const relabel = (id: bigint, key: string, origin: string, signedAt: Date) =>
    sql`update catalog_resources set key = ${key}, origin = ${origin}, ownership = 'provisional',
      moved_at = ${signedAt} where id = ${id}`

  /** The row under its new URL. The old origin served its words, so they are the account's now. */
  const restate = Effect.fnUntraced(function* (
    row: ResourceRow,
    identity: Identity,
    grade: DeclaredText["grade"],
    now: Date
  ) {
    const options = yield* liveOptions(sql, row.id)
    const words = { grade, identity, kept: row.declaration, options, isFree: true }
    yield* versions.apply(row, words, now)
    yield* sql`delete from catalog_words where resource_id = ${row.id} and grade = 'origin'`
    yield* sql`delete from catalog_claims where resource_id = ${row.id}`
    yield* sql`delete from catalog_contenders where resource_id = ${row.id}`
    // Payments under the shown words stay evidence for them.
    yield* sql`update catalog_claim_payers set claim = ${versions.bodyOf(words).hash}
      where resource_id = ${row.id} and claim = ${row.version_hash}`
    yield* sql`update catalog_probes set dead = 0, gone_at = null where resource_id = ${row.id}`
    yield* requestProbe(sql, row.id, config, { isFree: false, now })
  })

  return Effect.fnUntraced(function* (id: bigint, { from, payTo, signedAt, to }: Move, now: Date) {
    const at = new Date(signedAt)
    const row = (yield* lockResource(sql, { id }))!
    const identity = identityAt(row, from, to)
    const key = identityKey(crypto, identity)
    const there = yield* lockResource(sql, { key })
    if (there !== undefined) {
      const isOthers = there.has_evidence && (yield* liveOptions(sql, there.id)).some((one) => one.payTo !== payTo)
      if (there.state === "removed" || isOthers) return false
      yield* relabel(there.id, `moving ${there.id}`, from, at)
    }
    yield* relabel(id, key, to, at)
    yield* restate(row, identity, row.grade === "claimed" ? "claimed" : "declared", now)
    const detail = `${from} → ${to} by ${payTo}`
    const change = { by: "origin", move: "moved", reason: "signed_move", detail } as const
    yield* moveState(sql, facts, id, now, { ...change, from: row.state, to: "active" })
    if (there === undefined) return true
    // The listings change places. The new origin's own loses its evidence, and returns if the old origin serves it.
    const back = identityAt(there, to, from)
    yield* relabel(there.id, identityKey(crypto, back), from, at)
    yield* restate(there, back, "claimed", now)
    yield* sql`update catalog_resources set standing_at = null, established_at = null where id = ${there.id}`
    yield* moveState(sql, facts, there.id, now, { ...change, from: there.state, to: "stale" })
    return true
  })
})

export class OriginMoves extends Context.Service<
  OriginMoves,
  {
    readonly apply: (document: unknown, origin: string, now: Date) => Effect.Effect<MovesAnswer, SqlError.SqlError>
  }
>()("tollkeeper/catalog/OriginMoves") {
  static readonly layer = Layer.effect(
    OriginMoves,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto
      const network = yield* Network
      const { wellKnown } = yield* OriginDocuments
      const rehome = yield* rehoming

      /** Listings with evidence that pay only this account, and that no newer signature has moved. */
      const listingsOf = ({ from, payTo, signedAt }: Move) => sql`r.origin = ${from} and r.standing_at is not null
        and coalesce(r.moved_at < ${new Date(signedAt)}, true)
        and r.state in ('active', 'stale') and ${payTo} = all (select o.pay_to from catalog_options o
          where o.resource_id = r.id and o.retired_at is null) and ${payTo} = any(r.pay_tos)`

      const check = Effect.fnUntraced(function* (move: Move, now: Date) {
        const age = now.getTime() - Date.parse(move.signedAt)
        if (!(age >= -aheadMillis && age <= lifeMillis)) return yield* refuse("signedAt is not of the last seven days")
        const signature = Result.getOrElse(Base64.decode(move.signature), () => new Uint8Array())
        if (!isSignedText(crypto, move.payTo, moveText(move, network.id), signature))
          return yield* refuse("not signed by payTo")
        const known = yield* sql`select 1 from catalog_resources r where ${listingsOf(move)} limit 1`
        if (known.length === 0) return yield* refuse("no listing to move")
        const old = yield* wellKnown(move.from)
        const said = readJson(old.document)
        if (isFields(said) && said["movedTo"] === move.to) return sql`true`
        if (old.isGone === true) return sql`r.state = 'stale' and r.state_reason = 'origin_gone'`
        return yield* refuse("the old origin does not name this one in movedTo")
      })

      const carryOut = Effect.fnUntraced(function* (move: Move, isAllowed: Statement.Fragment, now: Date) {
        const { from, payTo, to } = move
        const held = yield* sql`select 1 from catalog_resources
          where (origin = ${to} or (origin = ${from} and ${payTo} = any(pay_tos)))
          and state in ('quarantined', 'removed') and state_reason in ('operator', 'local_origin') limit 1`
        if (held.length > 0) return yield* refuse("a listing of the new origin or of this account is withdrawn")
        const rows = yield* sql<{ id: bigint }>`select id from catalog_resources r
          where ${listingsOf(move)} and ${isAllowed} order by id limit ${listingsMax} for update`
        const results = yield* Effect.forEach(rows, ({ id }) => rehome(id, move, now))
        const moved = results.filter((isMoved) => isMoved).length
        return moved === 0 ? yield* refuse("no listing to move") : moved
      })

      const apply = Effect.fnUntraced(
        function* (document: unknown, origin: string, now: Date) {
          let answer: MovesAnswer = { moved: 0, detail: "" }
          for (const move of readMoves(document, origin)) {
            const { detail, moved } = yield* check(move, now).pipe(
              Effect.flatMap((isAllowed) => inTransaction(carryOut(move, isAllowed, now))),
              Effect.map((moved) => ({ moved, detail: `${moved} moved` })),
              Effect.catchTag("MoveRefused", ({ detail }) => Effect.succeed({ moved: 0, detail }))
            )
            answer = { moved: answer.moved + moved, detail: `${answer.detail}, move from ${move.from}: ${detail}` }
          }
          return answer
        },
        Effect.provideService(SqlClient.SqlClient, sql)
      )

      return OriginMoves.of({ apply })
    })
  )
}
