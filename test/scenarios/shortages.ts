// Incidents where a facilitator lacks something: its sponsor's XLM, space on its disk, its database server. Each logs
// one line when it begins and one when it ends, for any number of payments; a scene prints both.
import { Keypair } from "@stellar/stellar-sdk"
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from "node:fs"
import { join } from "node:path"
import type { Replica } from "./Replica.ts"
import type { Stage } from "./Stage.ts"

/** Exactly one line of each; as text. */
const bothLines = async (replica: Replica, begins: RegExp, ends: RegExp): Promise<string> => {
  await replica.says(ends)
  for (const wanted of [begins, ends]) {
    const count = replica.said(wanted).length
    if (count !== 1) throw new Error(`${replica.name} logs ${count} lines of ${wanted}`)
  }
  return [begins, ends].map((wanted) => `\n          ${replica.said(wanted)[0]}`).join("")
}

/** The answers of `/settle` to a payment; all must be busy with this cause. */
const busyOver = async ({ world }: Stage, { url }: Replica, body: unknown, cause: RegExp): Promise<void> => {
  for (let tries = 0; tries < 3; tries++) {
    const answer = await world.traffic.settle(body, undefined, [url])
    if (answer?.status !== 503 || !cause.test(JSON.stringify(answer)))
      throw new Error(`settle answers ${JSON.stringify(answer)}, which does not say ${cause}`)
  }
}

/** A facilitator starts with a sponsor that the ledger does not have yet; its account is funded later. */
export const unfundedSponsor = async (stage: Stage): Promise<string> => {
  const { world } = stage
  const sponsor = Keypair.random()
  const replica = await world.lone("unfunded", sponsor, [])
  replica.start()
  const begins = /^settling is busy: .*account is not on the ledger; send XLM to G/
  await replica.ready()
  const made = await world.traffic.make()
  await busyOver(stage, replica, made.body, new RegExp(`send XLM to ${sponsor.publicKey()}`))
  await replica.says(begins)
  await world.fund(sponsor.publicKey())
  if (!(await world.traffic.bring(made, undefined, [replica.url]))) throw new Error("it settles nothing once funded")
  const lines = await bothLines(replica, begins, /^settlements can be paid for again/)
  await replica.stop()
  return `settle 503 with the address to fund, then its payment settled${lines}`
}

/** The reserve is this far below the free space, because other programs write to the same disk. */
const marginBytes = 1_000_000_000
const chunk = Buffer.alloc(8_000_000, 1)

/** Makes a file of that size in bytes, written out, not sparse. */
const fill = (file: string, bytes: number): void => {
  const opened = openSync(file, "wx")
  try {
    for (let written = 0; written < bytes; written += chunk.length) writeSync(opened, chunk)
  } finally {
    closeSync(opened)
  }
}

/**
 * The disk never fills up in fact, which would affect everything else on the machine: the reserve is set to a gigabyte
 * less than the free space, and a file of two gigabytes takes the free space below it.
 */
export const fullDisk = async (stage: Stage): Promise<string> => {
  const { world } = stage
  const sponsor = Keypair.random()
  await world.fund(sponsor.publicKey())
  mkdirSync(world.state("disk"))
  const { bavail, bsize } = statfsSync(world.state("disk"))
  const reserve = Math.floor((bavail * bsize - marginBytes) / 1_000_000)
  if (reserve * 1_000_000 < 2 * marginBytes) return "not played: the disk has less than 3 GB free"
  const replica = await world.lone("disk", sponsor, [`database.disk_reserve_mb=${reserve}`])
  replica.start()
  await replica.ready()
  if (!(await world.traffic.bring(await world.traffic.make(), undefined, [replica.url])))
    throw new Error("it settles nothing before its disk fills")
  const file = join(world.folder, "full")
  const begins =
    /^settling is busy: the disk is full: \d+ MB free in .*, less than the reserve of \d+ MB; free some space/
  const made = await world.traffic.make()
  try {
    fill(file, 2 * marginBytes)
    await replica.says(begins)
    await busyOver(stage, replica, made.body, /disk is full/)
  } finally {
    rmSync(file, { force: true })
  }
  if (!(await world.traffic.bring(made, undefined, [replica.url])))
    throw new Error("it settles nothing once its disk has space")
  const lines = await bothLines(replica, begins, /^the disk has enough free space again/)
  await replica.stop()
  return `settle 503 below the reserve of ${reserve} MB, then its payment settled${lines}`
}

/** The database server of both replicas is stopped as its operator does it, and started again. */
export const stoppedServer = async ({ alerts, world }: Stage): Promise<string> => {
  const { postgres, replicas, traffic } = world
  await alerts.silent("TollkeeperDatabaseUnavailable")
  const begins =
    /^the database is unreachable since \S+ \(([A-Z0-9_]{4,}|no answer in time) [\w.:-]+\); settling is stopped/
  const begin = await postgres.pause!()
  let fired: string
  try {
    for (const replica of replicas) {
      await replica.says(begins)
      if (await replica.isReady()) throw new Error(`${replica.name} calls itself ready`)
    }
    fired = await alerts.fires("TollkeeperDatabaseUnavailable")
  } finally {
    await begin()
  }
  for (const replica of replicas) await replica.ready()
  await traffic.more(8)
  await alerts.clears("TollkeeperDatabaseUnavailable")
  const lines = []
  for (const replica of replicas)
    lines.push(await bothLines(replica, begins, /^the database answers again after \d+ s; settling continues/))
  return `not ready while the server is stopped, then on with the same processes; ${fired}${lines.join("")}`
}
