// Operational incidents of an operator's facilitators, each scene with the alert that reports it. A scene leaves the
// deployment as it found it: replicas ready, payments continuing.
import { Keypair } from "@stellar/stellar-sdk"
import { setTimeout as sleep } from "node:timers/promises"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"
import { operatorDay } from "./operatorDay.ts"
import { payXlm } from "./payXlm.ts"
import type { Replica } from "./Replica.ts"
import { restoreBackup } from "./restoreBackup.ts"
import { rotateKeys } from "./rotateKeys.ts"
import { fullDisk, stoppedServer, unfundedSponsor } from "./shortages.ts"
import type { Scene } from "./Stage.ts"

const connections = 12

const seconds = (millis: number): string => (millis / 1_000).toFixed(1)

/**
 * Clients that keep their connections open and send requests all the time; returns a function that ends them, and the
 * number of their requests.
 */
const keepAlive = ({ url }: Replica) => {
  let [isOn, asked] = [true, 0]
  const clients = Array.from({ length: connections }, async () => {
    while (isOn) {
      await fetch(`${url}/health/live`).then(
        async (answer) => {
          await answer.arrayBuffer()
          asked += 1
        },
        () => {}
      )
      await sleep(50)
    }
  })
  return async () => {
    isOn = false
    await Promise.all(clients)
    return asked
  }
}

const rollingRestart: Scene = {
  name: "restart",
  play: async ({ alerts, world }) => {
    await alerts.silent("TollkeeperDown", "TollkeeperRestarting")
    const before = world.traffic.paid.length
    const stops: Array<number> = []
    let asked = 0
    for (const replica of world.replicas) {
      const end = keepAlive(replica)
      await world.traffic.more(4)
      stops.push(await world.recreate(replica))
      asked += await end()
      await world.traffic.more(4)
    }
    await alerts.silent("TollkeeperDown", "TollkeeperRestarting")
    return (
      `stopped in ${stops.map(seconds).join(" and ")} s beside ${connections} open connections (${asked} requests), ` +
      `${world.traffic.paid.length - before} payments settled meanwhile; no alert fired`
    )
  }
}

const crashes: Scene = {
  name: "crash",
  play: async ({ alerts, world }) => {
    await alerts.silent("TollkeeperRestarting")
    const two = world.replicas[1]!
    const before = two.starts
    const startedAt = `process_start_time_seconds{instance="${new URL(two.url).host}"}`
    for (let times = 0; times < 5; times++) {
      const killedAt = Math.floor(Date.now() / 1_000)
      await two.crash()
      await two.ready()
      // Prometheus never sees a process that dies before it is scraped.
      await alerts.reads(startedAt, (value) => value >= killedAt)

      await world.traffic.more(2)
    }
    const fired = await alerts.fires("TollkeeperRestarting")
    return `killed 5 times, started again ${two.starts - before} times; ${fired}`
  }
}

const goneReplica: Scene = {
  name: "gone",
  play: async ({ alerts, world }) => {
    // The rule's half hour is of samples a minute apart: most of them have to have seen both.
    await alerts.reads("quantile_over_time(0.5, count(tollkeeper_build_info)[30m:1m])", (value) => value === 2)
    await alerts.clears("TollkeeperReplicaGone")
    const two = world.replicas[1]!
    await two.stop()
    const fired = await alerts.fires("TollkeeperReplicaGone")
    await world.traffic.more(4)
    two.start()
    await two.ready()
    await alerts.clears("TollkeeperReplicaGone")
    return `one stopped permanently, the other continues alone; ${fired}`
  }
}

const fullBudget: Scene = {
  name: "budget",
  play: async ({ alerts, world }) => {
    await alerts.silent("TollkeeperBudgetLow", "TollkeeperBudgetUsedUp")
    let settled = 0
    let refused: any
    while (refused === undefined) {
      const made = await world.traffic.make()
      const answer = await world.traffic.settle(made.body, world.smallKey)
      if (answer?.errorReason === "settle_ledger_sponsor_budget_exceeded") refused = answer
      // Any other outcome is known before the next payment.
      else if (await world.traffic.bring(made, world.smallKey)) settled += 1
      if (settled > 100) throw new Error("the budget of the small key never ends")
    }
    const scope = { scope: "key:small" }
    const fired = [
      await alerts.fires("TollkeeperBudgetUsedUp", scope),
      await alerts.fires("TollkeeperBudgetLow", scope)
    ]
    await world.traffic.more(3)
    return `refused after ${settled} payments of its key, other keys continue; ${fired.join(", ")}`
  }
}

const skewedClock: Scene = {
  name: "clock",
  play: async ({ alerts, world }) => {
    await alerts.silent("TollkeeperClockSkewed")
    const two = world.endpoints[1]!
    for (const endpoint of two) endpoint.skewSeconds = -30
    const instance = new URL(world.replicas[1]!.url).host
    const fired = await alerts.fires("TollkeeperClockSkewed", { instance })
    const skew = await world.metric(world.replicas[1]!, "tollkeeper_ledger_clock_skew_seconds")
    await world.traffic.more(4)
    for (const endpoint of two) endpoint.skewSeconds = 0
    await alerts.clears("TollkeeperClockSkewed")
    return `replica two reads ${skew?.toFixed(0)} s, payments continue; ${fired}`
  }
}

const deadRpc: Scene = {
  name: "rpc",
  play: async ({ alerts, world }) => {
    await alerts.silent("TollkeeperLedgerStalled", "TollkeeperRpcEndpointAway")
    const firsts = world.endpoints.map(([first]) => first!)
    for (const endpoint of firsts) endpoint.isDead = true
    const since = performance.now()
    await world.traffic.more(8)
    const away = seconds(performance.now() - since)
    const first = await alerts.fires("TollkeeperRpcEndpointAway", { endpoint: "1" })
    await alerts.silent("TollkeeperLedgerStalled")
    for (const endpoint of world.endpoints.flat()) endpoint.isDead = true
    const fired = `${first}, ${await alerts.fires("TollkeeperLedgerStalled")}`
    const { status } = await world.traffic.settle((await world.traffic.make()).body)
    if (status !== 503) throw new Error(`settle answers ${status} while no endpoint does`)
    for (const endpoint of world.endpoints.flat()) endpoint.isDead = false
    await world.traffic.more(8)
    await alerts.clears("TollkeeperLedgerStalled", "TollkeeperRpcEndpointAway")
    return `8 payments settled in ${away} s without the first endpoint, none without both, then on; ${fired}`
  }
}

const deadDatabase: Scene = {
  name: "database",
  play: async ({ alerts, world }) => {
    await alerts.silent("TollkeeperDatabaseUnavailable")
    const since = performance.now()
    world.postgres.freeze!()
    let fired: string
    try {
      fired = await alerts.fires("TollkeeperDatabaseUnavailable")
      for (const replica of world.replicas)
        if (await replica.isReady()) throw new Error(`${replica.name} calls itself ready`)
      await sleep(Math.max(0, 10_000 - (performance.now() - since)))
    } finally {
      world.postgres.thaw!()
    }
    const away = seconds(performance.now() - since)
    for (const replica of world.replicas) await replica.ready()
    await world.traffic.more(8)
    await alerts.clears("TollkeeperDatabaseUnavailable")
    return `silent for ${away} s, not ready meanwhile, then on with the same processes; ${fired}`
  }
}

const drainedSponsor: Scene = {
  name: "sponsor",
  play: async ({ alerts, world }) => {
    const names = ["TollkeeperSponsorEmpty", "TollkeeperSettlingUnavailable", "TollkeeperSponsorLow"]
    await alerts.silent(...names)
    const treasury = Keypair.random()
    await askFriendbot(world.ledgerUrl, treasury.publicKey())
    const [one] = world.replicas
    let drained = 0n
    // Charges in the meantime would make the sum too large, or leave something.
    await world.traffic.stop()
    const left = () => world.metric(one!, "tollkeeper_sponsor_payments_left")
    for (let tries = 0; (await left()) !== 0; tries++) {
      if (tries > 60) throw new Error("the sponsor cannot be drained")
      const spendable = BigInt((await world.metric(one!, "tollkeeper_sponsor_spendable_stroops")) ?? 0)
      if (spendable > 210_000n) drained += await world.drain(treasury.publicKey(), spendable - 190_000n)
      await sleep(1_000)
    }
    world.traffic.resume()
    const fired = []
    for (const name of names) fired.push(await alerts.fires(name))
    const { status } = await world.traffic.settle((await world.traffic.make()).body)
    if (status !== 503) throw new Error(`settle answers ${status} though the sponsor is empty`)
    const back = await payXlm(world.rpc, treasury, world.sponsor.publicKey(), drained)
    if (!back.hasSucceeded) throw new Error("what was taken from the sponsor cannot be given back")
    await world.traffic.more(8)
    await alerts.clears(...names)
    return `${drained} stroops taken and given back, settle 503 meanwhile, then on; ${fired.join(", ")}`
  }
}

/**
 * In this order: a rotation leaves another sponsor, and each restart of the first two scenes counts for the crash
 * alert.
 */
export const scenes: ReadonlyArray<Scene> = [
  { name: "operator", play: operatorDay },
  rollingRestart,
  crashes,
  goneReplica,
  fullBudget,
  skewedClock,
  deadRpc,
  deadDatabase,
  { name: "stopped", play: stoppedServer },
  drainedSponsor,
  { name: "unfunded", play: unfundedSponsor },
  { name: "disk", play: fullDisk },
  { name: "backup", play: restoreBackup },
  { name: "keys", play: rotateKeys }
]
