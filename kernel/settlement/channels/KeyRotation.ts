// Other keys while the process runs. An operator puts the new seeds into the sources (the files behind the
// variables, or the sealed file), the old ones behind them, and asks one replica to rotate: it reads its sources
// again, and takes them when nothing is lost by it: who was the sponsor still authorizes what names it, channels of
// before are still signed for, and the new sponsor can pay. What was signed before is sent as it was recorded and
// ends as it would have. The other replicas learn of it from a row, and follow as soon as their own sources hold the
// same keys. What a rotation would do can be told before, and asked for by that plan's name: then it is done only while
// the sources still hold what was told.
import { Context, Data, Effect, Layer, Schema } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, SqlError } from "effect/sql"
import { reconciler } from "../../Actor.ts"
import { Network } from "../../config/Network.ts"
import { Database, inTransaction } from "../../database/Database.ts"
import { elapsedMillis } from "../../elapsed.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import type { LedgerUnavailable } from "../../ledger/LedgerUnavailable.ts"
import { Crypto } from "../../platform/Crypto.ts"
import type { VaultRefused } from "../../signer/readSeeds.ts"
import { Signer } from "../../signer/Signer.ts"
import type { AccountNames } from "../../signer/Vault.ts"
import { Sponsor } from "../Sponsor.ts"

/** The sources hold no keys that could be rotated to. Nothing has changed. */
export class RotationRefused extends Schema.TaggedError<RotationRefused>()("RotationRefused", {
  message: Schema.String
}) {}

export type Rotated = Pick<AccountNames, "sponsor" | "formerSponsors" | "channels">

export interface RotationPlan {
  /** Names the keys that the sources hold. */
  readonly id: string
  readonly before: Rotated
  readonly next: Rotated
  /** Why it would be refused; undefined when it would be done. */
  readonly fault: string | undefined
}

/** What the sources hold was looked at, and not taken. */
class OnlyLooked extends Data.TaggedError("OnlyLooked")<{ readonly next: AccountNames }> {}

/** Between two looks at whether another replica has rotated. */
const lookEvery = "5 seconds"
const warnMillis = 60_000

const refuse = (message: string) => Effect.fail(new RotationRefused({ message }))

/** What would be lost, or what has not changed. */
const rotationFault = (what: "sponsor" | "channels", before: AccountNames, next: AccountNames): string | undefined => {
  const isSameSponsor = next.sponsor === before.sponsor
  const areSame = next.channels.join() === before.channels.join()
  if (what === "sponsor" && isSameSponsor)
    return `the sponsor is still ${before.sponsor}; put the new seed before it in its source (NEW,OLD), then ask again`
  if (what === "channels" && !isSameSponsor) return "the sources name another sponsor too; `keys rotate sponsor` first"
  if (what === "channels" && areSame)
    return "the channels are the same; put new seeds into their source, those of now behind a semicolon, then ask again"
  if (!isSameSponsor && !next.formerSponsors.includes(before.sponsor))
    return `the seed of ${before.sponsor} is gone; keep it behind the new one (NEW,OLD) until nothing names it any more`
  const known = new Set([...next.channels, ...next.formerChannels])
  const lost = before.channels.filter((address) => !known.has(address))
  return lost.length === 0
    ? undefined
    : `the seeds of ${lost.length} channels are gone; keep them behind a semicolon until the channels are merged back`
}

/** The new sponsor must be able to pay, unless a faucet funds it. */
const checkFunds = Effect.fnUntraced(function* (sponsor: string) {
  const network = yield* Network
  if (network.developmentAutoFund) return
  const { accounts } = yield* (yield* LedgerRpc).accounts([sponsor])
  const account = accounts.get(sponsor)
  const held = account === undefined ? 0n : account.balanceStroops - account.reserveStroops
  const least = network.channelBalanceStroopsMin
  if (held >= least) return
  const why = `${sponsor} holds ${held} stroops above its reserve`
  return yield* refuse(`${why}; fund it with at least ${least}, then ask again`)
})

/** What this process signs as, named so that replicas can compare it without telling a key. */
const makeIdOf = Effect.map(Crypto, ({ sha256 }) => ({ channels, sponsor }: AccountNames): string => {
  const text = [sponsor, ...channels].join()
  return Hex.encode(sha256(new TextEncoder().encode(text))).slice(0, 32)
})

/** A look at whether another replica has rotated, and to what; taken when the sources here hold the same. */
const makeFollow = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  const signer = yield* Signer
  const sponsor = yield* Sponsor
  const idOf = yield* makeIdOf
  let warnedAt = -Infinity
  const behind = Effect.fnUntraced(function* (why: string) {
    const now = yield* elapsedMillis
    if (now - warnedAt < warnMillis) return
    warnedAt = now
    yield* Effect.logWarning(`another replica has rotated; the sources here do not hold its keys: ${why}`)
  })
  return Effect.gen(function* () {
    const [row] = yield* sql<{ to: string }>`select to_id as "to" from kernel_key_rotations
      where network = ${network.id} and from_id = ${idOf(signer.names())}`
    if (row === undefined) return
    const expected = (next: AccountNames) =>
      idOf(next) === row.to ? Effect.void : refuse("renew its files; what stands in a variable needs a restart")
    const followed = yield* Effect.result(signer.reread(expected))
    if (followed._tag === "Failure") return yield* behind(followed.failure.message)
    yield* sponsor.suspect
    yield* Effect.logInfo("follows a rotation of keys").pipe(Effect.annotateLogs({ sponsor: signer.sponsor }))
  })
})

export class KeyRotation extends Context.Service<
  KeyRotation,
  {
    /** Reads the sources and takes nothing. */
    readonly plan: (what: "sponsor" | "channels") => Effect.Effect<RotationPlan, VaultRefused | LedgerUnavailable>
    /** With a plan's id, only as it was planned. */
    readonly rotate: (
      what: "sponsor" | "channels",
      planned?: string
    ) => Effect.Effect<Rotated, RotationRefused | VaultRefused | LedgerUnavailable | SqlError.SqlError>
  }
>()("tollkeeper/settlement/channels/KeyRotation") {
  static readonly layer = Layer.effect(
    KeyRotation,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const network = yield* Network
      const signer = yield* Signer
      const sponsor = yield* Sponsor
      const rpc = yield* LedgerRpc
      const idOf = yield* makeIdOf

      const note = (from: string, to: string) =>
        inTransaction(
          Effect.andThen(
            sql`delete from kernel_key_rotations where network = ${network.id} and from_id = ${to}`,
            sql`insert into kernel_key_rotations (network, from_id, to_id) values (${network.id}, ${from}, ${to})
              on conflict (network, from_id) do update set to_id = excluded.to_id, rotated_at = clock_timestamp()`
          )
        ).pipe(Effect.provideService(SqlClient.SqlClient, sql))

      /** What would be lost, or what is missing. */
      const check = Effect.fnUntraced(
        function* (what: "sponsor" | "channels", before: AccountNames, next: AccountNames) {
          const fault = rotationFault(what, before, next)
          if (fault !== undefined) return yield* refuse(fault)
          yield* checkFunds(next.sponsor)
        },
        Effect.provideService(Network, network),
        Effect.provideService(LedgerRpc, rpc)
      )

      const plan = Effect.fn("KeyRotation.plan")(function* (what: "sponsor" | "channels") {
        const before = signer.names()
        // The judge lets nothing through, so nothing is taken.
        const next = yield* signer
          .reread((next) => Effect.fail(new OnlyLooked({ next })))
          .pipe(
            Effect.as(before),
            Effect.catchTag("OnlyLooked", (looked) => Effect.succeed(looked.next))
          )
        const fault = yield* check(what, before, next).pipe(
          Effect.as(undefined),
          Effect.catchTag("RotationRefused", ({ message }) => Effect.succeed(message))
        )
        return { id: idOf(next), before, next, fault }
      })

      const rotate = Effect.fn("KeyRotation.rotate")(function* (what: "sponsor" | "channels", planned?: string) {
        const before = signer.names()
        yield* signer.reread(
          Effect.fnUntraced(function* (next) {
            if (planned !== undefined && planned !== idOf(next))
              return yield* refuse("the sources hold other keys than were planned; look at the plan again")
            yield* check(what, before, next)
          })
        )
        const now = signer.names()
        yield* note(idOf(before), idOf(now))
        yield* sponsor.suspect
        yield* Effect.logInfo("keys were rotated").pipe(
          Effect.annotateLogs({ sponsor: now.sponsor, before: before.sponsor })
        )
        return now
      })

      // An embedded database has one process.
      if ((yield* Database).kind === "server")
        yield* reconciler({ id: "key-rotation", every: lookEvery, turn: yield* makeFollow })

      return KeyRotation.of({ plan, rotate })
    })
  )
}
