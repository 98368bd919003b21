// Accidents of a run in addition to the faults of single calls: clocks that jump, machines that die, nodes that freeze,
// a surge, a network that halts, a store that loses its last transactions, a stranger on our channels.
import { isNonceless } from "./SimulatedBatch.ts"
import type { Replica } from "./Replica.ts"
import type { World } from "./World.ts"

/** A surge's floor in stroops: below, within and above the ceiling's range. */
const floors = [150n, 1_000n, 5_000n, 9_000n, 20_000n] as const

export interface Storm {
  readonly world: World
  /** Its duration. */
  readonly millis: number
  readonly isFair: boolean
  /** A running replica; undefined if the drawn one is not running. */
  readonly someReplica: () => Replica | undefined
  /** Minimum number of accidents in a run. */
  readonly faultsMin: number
}

/** Clock error of a machine at its start: mostly none, sometimes seconds, rarely hours. */
export const skewOf = ({ coverage, random: { chance, int } }: World): number => {
  if (chance(0.12)) {
    coverage.count("clock off by hours")
    return int(-5 * 3_600_000, 5 * 3_600_000)
  }
  return chance(0.3) ? int(-20_000, 20_000) : 0
}

const clockJumps = ({ millis, someReplica, world }: Storm) => {
  const { coverage, random, time } = world
  const { chance, int } = random
  for (let jump = int(0, 2); jump > 0; jump--) {
    time.after(int(1_000, millis), () => {
      const replica = someReplica()
      if (replica === undefined) return
      coverage.count("clock jump")
      replica.skewMillis += chance(0.2) ? int(-3_600_000, 3_600_000) : int(-60_000, 60_000)
    })
  }
}

const networkTrouble = ({ millis, world }: Storm) => {
  const { coverage, ledger, nodes, random, time } = world
  const { chance, int, pick } = random
  if (chance(0.3)) {
    const begins = int(2_000, millis - 20_000)
    time.after(begins, () => {
      coverage.count("surge")
      ledger.surge = { floorStroops: pick(floors), capacity: int(1, 3) }
    })
    time.after(begins + int(8_000, 40_000), () => (ledger.surge = undefined))
  }
  if (chance(0.2)) {
    const node = nodes[int(1, 2)]!
    const begins = int(2_000, millis - 10_000)
    time.after(begins, () => (node.stillAt = node.latestLedger))
    time.after(begins + int(5_000, 60_000), () => (node.stillAt = undefined))
  }
  if (chance(0.05)) {
    const begins = int(5_000, millis - 10_000)
    time.after(begins, () => {
      coverage.count("network halts")
      ledger.isHalted = true
    })
    time.after(begins + int(40_000, 300_000), () => (ledger.isHalted = false))
  }
}

/** One of the endpoints reports payments as successful that are on no ledger. */
const liar = ({ world }: Storm) => {
  const { chance } = world.random
  if (world.isBalanced || !chance(0.15)) return
  world.nodes[2]!.forges = 0.5
  world.nodes[1]!.hides = 0
  // A silent second endpoint is a different case: then one statement decides, and the record notes this.
  world.faults = { ...world.faults, rpcAway: 0, slow: 0 }
}

/** A reader of the ledger submits the authorization of a failed payment. */
const lateUses = ({ millis, world }: Storm) => {
  const { ledger, random, store, time } = world
  for (let at = 1_000; at < millis; at += 2_000)
    time.after(at, () => {
      for (const { born, watchAfter } of store.rows.values()) {
        const authorization = [...world.authorizations.values()].find(
          ({ key, scheme }) => key === born.authorizationKey && scheme === born.scheme
        )
        if (
          watchAfter !== undefined &&
          authorization !== undefined &&
          !isNonceless(authorization.act) &&
          random.chance(0.3)
        )
          ledger.spendElsewhere(authorization)
      }
    })
}

/** A stranger that has our keys. */
const usurpers = ({ millis, world }: Storm) => {
  const { coverage, ledger, random, time } = world
  const { chance, int, pick } = random
  for (let uses = chance(0.2) ? int(1, 3) : 0; uses > 0; uses--) {
    time.after(int(2_000, millis), () => {
      coverage.count("channel used by others")
      world.hasUsurpers = true
      ledger.usurp(pick([...ledger.channels.keys()]))
    })
  }
}

/** The database restarts without the commits of its last moments. */
const lostCommits = ({ millis, world }: Storm) => {
  const { coverage, random, store, time } = world
  const { chance, int } = random
  // A later loss may bring back the part of the journal that an earlier one dropped.
  const bringsBack = world.seed % 3 === 0
  let givenUp: (() => void) | undefined
  for (let losses = chance(0.12) ? int(1, 2) : 0; losses > 0; losses--) {
    const at = int(8_000, millis - 5_000)
    let restore = () => {}
    time.after(at - int(100, 6_000), () => (restore = store.snapshot()))
    time.after(at, () => {
      coverage.count("commits lost")
      world.hasLostCommits = true
      const before = store.snapshot()
      if (bringsBack && givenUp !== undefined) givenUp()
      else restore()
      givenUp = before
      // After a restore, the journal begins an epoch before anything is leased.
      store.beginEpoch()
    })
  }
}

/** Without random faults, some accidents are arranged. */
const arrangedDeaths = ({ faultsMin, isFair, millis, someReplica, world }: Storm) => {
  for (let deaths = isFair ? faultsMin : 0; deaths > 0; deaths--) {
    world.time.after(world.random.int(5_000, millis - 5_000), () => {
      const replica = someReplica()
      if (replica !== undefined) world.kill(replica, "crash at a port")
      else world.fault("crash at a port")
    })
  }
}

export const planAccidents = (storm: Storm): void => {
  clockJumps(storm)
  networkTrouble(storm)
  liar(storm)
  lateUses(storm)
  usurpers(storm)
  lostCommits(storm)
  arrangedDeaths(storm)
}

/**
 * Reads the accounts of idle channels at a node and corrects a stranger's changes, as `reconcileChannels` does over the
 * SQL tables: it only accepts a number from an answer that is at least as new as the channel's last outcome.
 */
export const surveyChannels = (world: World): void => {
  const { ledger, random, store, time } = world
  const node = random.pick(world.nodes)
  const asOf = node.latestLedger
  for (const { address, reread, sequence, settlement } of store.channels.values()) {
    const known = reread ? undefined : sequence
    const account = ledger.accountAt(address, asOf)
    if (settlement !== undefined || account === undefined || account.sequence === known) continue
    time.after(random.int(1, 200), () => {
      if (known === undefined) store.learn(address, account.sequence, asOf)
      else store.correct(address, known, account.sequence, asOf)
    })
  }
}
