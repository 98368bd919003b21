// The store from the view of a replica: the in-memory tables behind calls that take time and may fail before or after
// they took effect.
import { Duration, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { Budget } from "../../kernel/budget/Budget.ts"
import { ChannelCount } from "../../kernel/settlement/channels/ChannelCount.ts"
import { ChannelStore } from "../../kernel/settlement/channels/ChannelStore.ts"
import { Leases } from "../../kernel/settlement/Leases.ts"
import { Settlements } from "../../kernel/settlement/store/Settlements.ts"
import type { Occurrence } from "./Coverage.ts"
import { Reading, type Replica } from "./Replica.ts"
import type { World } from "./World.ts"

const connectionLost = () =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Error("the connection is gone") } as never)
  } as never)

/** Runs an operation in the store after a delay; it may fail before or after its effect. */
const storing =
  (world: World, replica: Replica) =>
  <A>(run: () => A): Effect.Effect<A, SqlError.SqlError> => {
    const failure = (probability: number, what: Occurrence) => {
      if (!world.random.chance(probability)) return undefined
      world.fault(what)
      return connectionLost()
    }
    return Effect.suspend(() =>
      world.call(replica, run, {
        before: () => failure(world.faults.storeBefore, "store failed before"),
        after: () => failure(world.faults.storeAfter, "store failed after")
      })
    )
  }

type Stored = ReturnType<typeof storing>

const settlementsOf = (world: World, stored: Stored) => {
  const { coverage, store, time } = world
  return Settlements.of({
    find: (query) =>
      Effect.flatMap(Reading, (read) =>
        stored(() => {
          read.at ??= time.now
          return store.find(query)
        })
      ),
    record: (settlement) =>
      stored(() => {
        const answer = store.record(settlement)
        if (answer === undefined) throw new Error("an id or a transaction was recorded twice")
        if (answer._tag === "Recorded") world.bornIn.set(settlement.id, world.ledger.sequence)
        if (answer._tag === "FenceLost") coverage.count("fence lost")
        if (answer._tag === "Known") coverage.count("recorded twice")
        if (answer._tag === "BudgetExceeded") coverage.count("over budget")
        if (answer._tag === "TooManyOpen") coverage.count("too many open")
        return answer
      }),
    watched: (limit) => stored(() => store.watched(limit)),
    unwatch: (id, isDead) => stored(() => store.unwatch(id, isDead)),
    correct: (id, correction) =>
      stored(() => {
        const answer = store.correctFailed(id, correction)
        if (answer._tag === "Resolved") coverage.count("failed, then used")
        return answer
      }),
    addAttempt: (id, attempt, known) => stored(() => store.addAttempt(id, attempt, known)),
    noteSent: (id, number, sent) => stored(() => store.noteSent(id, number, sent)),
    open: (limit) => stored(() => store.open(limit)),
    resolve: (id, outcome, known) =>
      stored(() => {
        const answer = store.resolve(id, outcome, known)
        if (answer._tag === "Resolved") world.checkEnd(store.rows.get(id)!, outcome)
        return answer
      }),
    freeChannel: (id, ledger, attemptsKnown) =>
      stored(() => {
        const isFreed = store.freeChannel(id, ledger, attemptsKnown)
        if (isFreed) coverage.count("channel freed before the end")
        return isFreed
      }),
    rebuild: (id, lease, attempt, known) =>
      stored(() => {
        const number = store.rebuild(id, lease, attempt, known)
        if (number === undefined) return undefined
        coverage.count("built again")
        world.bornIn.set(id, world.ledger.sequence)
        world.checkRebuild(store.rows.get(id)!)
        return number
      }),
    wasOwner: () => Effect.succeed(false),
    adopt: (settlement) =>
      stored(() => {
        const answer = store.adopt(settlement)
        if (answer === "Adopted") coverage.count("adopted")
        return answer
      }),
    claimDelivery: (claim, principal, key) => stored(() => store.claimDelivery(claim, principal, key)),
    endDeliveries: (ends) => stored(() => store.endDeliveries(ends)),
    restoreDeliveries: () => Effect.void,
    openCount: stored(() => store.openCount()),
    byIds: (ids) => (ids.length === 0 ? Effect.succeed([]) : stored(() => store.byIds(ids))),
    endsOf: (ids) => (ids.length === 0 ? Effect.succeed([]) : stored(() => store.endsOf(ids))),
    lookup: () => Effect.succeed([])
  })
}

/** The last holder of each lease of work, over all replicas of a world. */
const heldBefore = new WeakMap<World, string>()

export const simulatedStore = (world: World, replica: Replica) => {
  const { coverage, store } = world
  const stored = storing(world, replica)
  const holder = `${replica.name} ${world.random.int(0, 1e9)}`
  const { channels } = replica.keys.signer
  let isHolding = false
  return Layer.mergeAll(
    Layer.succeed(Settlements, settlementsOf(world, stored)),
    Layer.succeed(
      ChannelStore,
      ChannelStore.of({
        take: (count) =>
          stored(() => {
            const leases = store.take(count, channels)
            if (leases.length === 0) coverage.count("no channel free")
            if (leases.length > 1) coverage.count("several channels leased")
            return leases
          }),
        distrust: () =>
          stored(() => {
            coverage.count("channels distrusted")
            store.distrust()
          }),
        onDistrusted: () => Effect.void,
        release: (lease) => stored(() => store.release(lease)),
        learn: (address, sequence, asOfLedger) => stored(() => store.learn(address, sequence, asOfLedger)),
        correct: (address, known, sequence, asOfLedger) =>
          stored(() => store.correct(address, known, sequence, asOfLedger)),
        counts: stored(() => store.counts(channels))
      })
    ),
    Layer.succeed(
      ChannelCount,
      ChannelCount.of({
        known: () => channels.length,
        heed: () => channels.length,
        read: Effect.succeed(channels.length)
      })
    ),
    Layer.succeed(
      Leases,
      Leases.of({
        hold: (name, duration) =>
          stored(() => {
            const isHeld = store.hold(name, holder, Duration.toMillis(duration))
            const before = heldBefore.get(world)
            if (isHeld && !isHolding && before !== undefined && before !== holder) coverage.count("lease taken over")
            if (isHeld) heldBefore.set(world, holder)
            isHolding ||= isHeld
            return isHeld
          })
      })
    ),
    Layer.succeed(
      Budget,
      Budget.of({
        fits: (principal, stroops) => stored(() => store.fits(principal, stroops)),
        fitsAsRead: (principal, stroops) => stored(() => store.fits(principal, stroops)),
        resets: Effect.succeed({ at: 86_400_000, inMillis: 1_000 }),
        reserve: () => Effect.die("part of the store's record"),
        reserving: () => Effect.die("part of the store's record"),
        today: Effect.die("not used in the simulation"),
        status: Effect.die("not used in the simulation"),
        charge: () => Effect.die("part of the store's adoption"),
        commit: () => Effect.die("part of the store's resolve")
      })
    )
  )
}
