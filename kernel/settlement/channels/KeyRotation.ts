// Key rotation while the process runs. An operator puts the new seeds into the sources (the files behind the variables,
// or the sealed file), the old ones behind them, and asks one replica to rotate. The replica reads its sources again.
// It takes the keys only if nothing is lost: the previous sponsor still authorizes the calls that name it, previous
// channels can still be signed for, and the new sponsor can pay. Transactions signed before are sent as recorded and
// end normally. The row of the rotation is committed first: while it cannot be written, no replica changes its keys.
// The other replicas poll those rows and take the newest keys that their own sources hold, across any number of
// rotations. A replica without the newest keys in its sources warns, and readiness and metrics report it. A plan shows
// the effect of a rotation. With a plan's id the rotation runs only if the sources still match the plan.
import { Context, Data, Effect, Layer, Schema } from "effect"
import { Hex } from "effect/encoding"
import type { SqlError } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"
import { Network } from "../../config/Network.ts"
import { Server } from "../../config/Server.ts"
import { Database } from "../../database/Database.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { Health } from "../../health/Health.ts"
import { LedgerRpc, type LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import { Crypto } from "../../platform/Crypto.ts"
import { Host } from "../../platform/Host.ts"
import type { VaultRefused } from "../../signer/readSeeds.ts"
import { Signer } from "../../signer/Signer.ts"
import type { AccountNames } from "../../signer/Vault.ts"
import { measure } from "../../telemetry/Measure.ts"
import { rotating } from "../../telemetry/metrics.ts"
import { Sponsor } from "../sponsor/Sponsor.ts"
import { makeRotationJournal, type RotationJournal } from "./RotationJournal.ts"
import {
  derivedChannels,
  newestOf,
  type Rotation,
  type RotationKind,
  rotationStatus,
  type RotationStatus,
  type SigningKeys,
  type RotationStatusInput,
  takesUp,
  unrecordedFrom
} from "./rotationStatus.ts"

/** The sources hold no keys to rotate to. Nothing has changed. */
class RotationRefused extends Schema.TaggedError<RotationRefused>()("RotationRefused", {
  message: Schema.String
}) {}

export type KeyAccounts = Pick<AccountNames, "sponsor" | "formerSponsors" | "channels">

interface RotationPlan {
  /** Identifies the keys in the sources. */
  readonly id: string
  readonly before: KeyAccounts
  readonly next: KeyAccounts
  /** The reason why it would be refused; undefined if it would succeed. */
  readonly fault: string | undefined
}

/** The result of a dry run: it read the sources and took no keys. */
class DryRun extends Data.TaggedError("DryRun")<{ readonly next: AccountNames }> {}

/** Interval between two polls for rotations of other replicas. */
const pollEvery = "2 seconds"
const warnMillis = 60_000

const refuse = (message: string) => Effect.fail(new RotationRefused({ message }))

/** The keys that would be lost, or the reason why nothing would change. */
const rotationError = (what: RotationKind, before: AccountNames, next: AccountNames): string | undefined => {
  const isSameSponsor = next.sponsor === before.sponsor
  const areSame = next.channels.join() === before.channels.join()
  if (what === "sponsor" && isSameSponsor)
    return `the sponsor is still ${before.sponsor}; put the new seed before it in its source (NEW,OLD), then try again`
  if (what === "channels" && !isSameSponsor) return "the sources name another sponsor too; `keys rotate sponsor` first"
  if (what === "channels" && areSame)
    return "the channels are unchanged; put new seeds into their source, current ones after a semicolon, then try again"
  if (!isSameSponsor && !next.formerSponsors.includes(before.sponsor))
    return `the seed of ${before.sponsor} is missing; keep it after the new one (NEW,OLD) until nothing refers to it`
  const known = new Set([...next.channels, ...next.formerChannels])
  const lost = before.channels.filter((address) => !known.has(address))
  return lost.length === 0
    ? undefined
    : `the seeds of ${lost.length} channels are missing; keep them after a semicolon until the channels are merged back`
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
  return yield* refuse(`${why}; fund it with at least ${least}, then try again`)
})

/**
 * Names the keys of one reading: sponsors by address, channels by a digest unless they derive from the sponsor's seed.
 */
const makeKeysOf = Effect.map(Crypto, ({ sha256 }) => (names: AccountNames): SigningKeys => ({
  sponsor: names.sponsor,
  channels: names.areChannelsGiven
    ? Hex.encode(sha256(new TextEncoder().encode(names.channels.join()))).slice(0, 32)
    : `${derivedChannels} from ${names.sponsor}`
}))

/** Identifies exactly the content of the sources. */
const makePlanIdOf = Effect.map(Crypto, ({ sha256 }) => ({ channels, sponsor }: AccountNames): string => {
  const text = [sponsor, ...channels].join()
  return Hex.encode(sha256(new TextEncoder().encode(text))).slice(0, 32)
})

const makeJournal = Effect.gen(function* () {
  const network = yield* Network
  const name = (yield* Server).instance ?? (yield* Host).name
  const journal = yield* makeRotationJournal(network.id, `${name}/${Hex.encode((yield* Crypto).randomBytes(4))}`)
  yield* Effect.addFinalizer(() => journal.leave)
  return journal
})

/** The signing keys of this process, and how it applies a change of them. */
interface OwnKeys {
  readonly mine: () => SigningKeys
  readonly took: (from: SigningKeys) => Effect.Effect<void>
  readonly keysOf: (names: AccountNames) => SigningKeys
}

/** The signing keys of this process, their last change, and their relation to the recorded rotations. */
const makeOwnKeys = Effect.gen(function* () {
  const signer = yield* Signer
  const sponsor = yield* Sponsor
  const keysOf = yield* makeKeysOf
  const mine = () => keysOf(signer.names())
  /** If the database loses the row of this process's last change, it is written again. */
  let taken: RotationStatusInput["taken"]
  const took = Effect.fnUntraced(function* (from: SigningKeys) {
    taken = { from, to: mine() }
    yield* sponsor.suspect
    yield* Effect.logInfo("signs with rotated keys").pipe(
      Effect.annotateLogs({ sponsor: signer.sponsor, before: from.sponsor })
    )
  })
  const inputOf = (rotations: ReadonlyArray<Rotation>, live: ReadonlyArray<SigningKeys>): RotationStatusInput => ({
    rotations,
    live,
    names: signer.names(),
    keys: mine(),
    taken
  })
  return { mine, took, inputOf, keysOf }
})

/** Applies the newest keys that this replica's sources hold; warns once a minute of missing ones. */
const makeFollow = Effect.fnUntraced(function* ({ keysOf, mine, took }: OwnKeys) {
  const signer = yield* Signer
  let warnedAt = -Infinity
  return Effect.fnUntraced(function* (rotations: ReadonlyArray<Rotation>) {
    const before = mine()
    const newest = newestOf(rotations, "sponsor", before.sponsor)
    const followed = yield* Effect.result(
      signer.reread((next) =>
        takesUp(rotations, before, keysOf(next))
          ? Effect.void
          : refuse(
              `they begin with ${next.sponsor}, the newest is ${newest}; ` +
                "renew its files; keys in a variable need a restart"
            )
      )
    )
    if (followed._tag === "Success") return yield* took(before)
    const now = yield* monotonicMillis
    if (now - warnedAt < warnMillis) return
    warnedAt = now
    const why = followed.failure.message
    yield* Effect.logWarning(`keys were rotated, but the sources here do not contain the newest ones: ${why}`)
  })
})

const beforeFirstPoll: RotationStatus = {
  state: "current",
  generation: 0,
  progress: undefined,
  replicasBehind: 0,
  detail: undefined
}

/** Polls the rotations, applies newer keys from the sources, and tracks whether this replica signs with them. */
const makeFollower = Effect.fnUntraced(function* (journal: RotationJournal) {
  const own = yield* makeOwnKeys
  const { inputOf, mine, took } = own
  const follow = yield* makeFollow(own)
  let status = beforeFirstPoll

  const report = Effect.suspend(() =>
    Effect.all([
      measure(rotating.current, status.state === "behind" ? 0 : 1),
      measure(rotating.generation, status.generation),
      measure(rotating.replicasBehind, status.replicasBehind)
    ])
  )
  yield* report

  const poll = Effect.gen(function* () {
    const input = inputOf(yield* journal.rotations, yield* journal.live)
    status = rotationStatus(input)
    yield* report
    return input.rotations
  })

  /** Records a rotation that the journal lacks: keys taken by a restart, or a row lost by a failover. */
  const recordAgain = Effect.gen(function* () {
    yield* journal.record((rotations) =>
      Effect.succeed({ from: unrecordedFrom(inputOf(rotations, [])) ?? mine(), to: mine() })
    )
    yield* Effect.logWarning("recorded the rotation to the keys that sign here, which was missing in the database")
  })

  const turn = Effect.gen(function* () {
    const polled = yield* poll
    const { state } = status
    if (state === "behind") yield* follow(polled)
    if (state === "ahead") yield* recordAgain
    yield* journal.announce(mine())
    const rotations = state === "current" ? polled : yield* poll
    const keys = mine()
    for (const rotation of rotations)
      if (rotation.to === keys[rotation.kind]) yield* journal.advance(rotation, status.replicasBehind === 0)
  })

  return { turn, took, mine, status: () => status }
})

/** The change that a rotation from these keys would record; refused if it would undo another replica's rotation. */
const changeOf = (
  rotations: ReadonlyArray<Rotation>,
  before: SigningKeys,
  next: AccountNames,
  to: SigningKeys
): Effect.Effect<{ readonly from: SigningKeys; readonly to: SigningKeys }, RotationRefused> => {
  const newest = newestOf(rotations, "sponsor", before.sponsor)
  return [before.sponsor, next.sponsor, ...next.formerSponsors].includes(newest)
    ? Effect.succeed({
        from: { sponsor: newest, channels: newestOf(rotations, "channels", before.channels) },
        to
      })
    : refuse(
        `another replica rotated to ${newest}, whose seed is not in the sources here; ` +
          "put it after the new one (NEW,OLD), then try again"
      )
}

/** Refuses a change that would lose keys, or a sponsor that cannot pay. */
const makeCheck = Effect.gen(function* () {
  const network = yield* Network
  const rpc = yield* LedgerRpc
  return Effect.fnUntraced(
    function* (what: RotationKind, before: AccountNames, next: AccountNames) {
      const error = rotationError(what, before, next)
      if (error !== undefined) return yield* refuse(error)
      yield* checkFunds(next.sponsor)
    },
    Effect.provideService(Network, network),
    Effect.provideService(LedgerRpc, rpc)
  )
})

const reportOf = (status: RotationStatus, sponsor: string) => ({
  state: status.state === "behind" ? ("degraded" as const) : ("ready" as const),
  ...(status.detail === undefined ? {} : { detail: status.detail }),
  figures: {
    signsAs: sponsor,
    rotation: status.generation,
    rotationState: status.progress ?? "none",
    replicasBehind: status.replicasBehind
  }
})

export class KeyRotation extends Context.Service<
  KeyRotation,
  {
    /** Reads the sources without applying them. */
    readonly plan: (what: RotationKind) => Effect.Effect<RotationPlan, VaultRefused | LedgerUnavailable>
    /** Records the rotation, then applies the keys here. With a plan's id, only exactly as planned. */
    readonly rotate: (
      what: RotationKind,
      planned?: string
    ) => Effect.Effect<KeyAccounts, RotationRefused | VaultRefused | LedgerUnavailable | SqlError.SqlError>
    /** Relation of this replica's keys to the recorded rotations, by the last poll. */
    readonly status: () => RotationStatus
  }
>()("tollkeeper/settlement/channels/KeyRotation") {
  static readonly layer = Layer.effect(
    KeyRotation,
    Effect.gen(function* () {
      const signer = yield* Signer
      const keysOf = yield* makeKeysOf
      const planIdOf = yield* makePlanIdOf
      const journal = yield* makeJournal
      const follower = yield* makeFollower(journal)
      const check = yield* makeCheck

      const plan = Effect.fn("KeyRotation.plan")(function* (what: RotationKind) {
        const before = signer.names()
        // The check refuses every key set, so none is applied.
        const next = yield* signer
          .reread((next) => Effect.fail(new DryRun({ next })))
          .pipe(
            Effect.as(before),
            Effect.catchTag("DryRun", (polled) => Effect.succeed(polled.next))
          )
        const failure = yield* check(what, before, next).pipe(
          Effect.as(undefined),
          Effect.catchTag("RotationRefused", ({ message }) => Effect.succeed(message))
        )
        return { id: planIdOf(next), before, next, fault: failure }
      })

      const rotate = Effect.fn("KeyRotation.rotate")(function* (what: RotationKind, planned?: string) {
        const before = follower.mine()
        yield* signer.reread(
          Effect.fnUntraced(function* (next) {
            if (planned !== undefined && planned !== planIdOf(next))
              return yield* refuse("the sources no longer hold the planned keys; make a new plan")
            yield* check(what, signer.names(), next)
            // Committed before the first signature: without its row, no replica changes its keys.
            yield* journal.record((rotations) => changeOf(rotations, before, next, keysOf(next)))
          })
        )
        yield* follower.took(before)
        yield* Effect.catch(follower.turn, (error) => Effect.logDebug("polling the rotation again", error))
        return signer.names()
      })

      yield* (yield* Health).register(
        "signer",
        Effect.sync(() => reportOf(follower.status(), signer.sponsor))
      )
      // Only this process can use an embedded database.
      if ((yield* Database).kind === "server")
        yield* reconciler({ id: "key-rotation", every: pollEvery, turn: follower.turn })

      return KeyRotation.of({ plan, rotate, status: follower.status })
    })
  )
}
