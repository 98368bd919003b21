// A backup taken by the documented command while payments are in flight, and restored after others have settled: its
// open payments end correctly, and payments without a restored record are found on the ledger when they are sent again.
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { execFile } from "node:child_process"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import { binariesWith } from "../support/postgres.ts"
import { pendingPayment, settledInTheEnd } from "./pendingPayment.ts"
import type { Stage } from "./Stage.ts"
import type { World } from "./World.ts"

const run = (program: string, args: ReadonlyArray<string>) =>
  promisify(execFile)(join(binariesWith("pg_dump", "pg_restore"), program), [...args], {
    env: { ...process.env, LC_ALL: "C" }
  })

/** Creates an empty database next to the current one; returns its URL. */
const emptyDatabase = async ({ postgres }: World): Promise<string> => {
  const create = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`create database restored`.unprepared).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(postgres.url), maxConnections: 1 })),
    Effect.scoped
  )
  await Effect.runPromise(create)
  return Object.assign(new URL(postgres.url), { pathname: "/restored" }).href
}

export const restoreBackup = async ({ alerts, world }: Stage): Promise<string> => {
  const { replicas, traffic } = world
  await alerts.silent("TollkeeperDown")
  world.hold(true)
  const pending = [await pendingPayment(world), await pendingPayment(world)]
  const file = join(world.folder, "tollkeeper.dump")
  await run("pg_dump", ["--format=custom", `--file=${file}`, world.databaseUrl])
  world.hold(false)
  const known = traffic.paid.length
  await traffic.more(20)
  await traffic.stop()
  const unknown = traffic.paid.slice(known)

  await Promise.all(replicas.map((replica) => replica.stop()))
  const fired = await alerts.fires("TollkeeperDown")
  const restored = await emptyDatabase(world)
  await run("pg_restore", ["--exit-on-error", "--no-owner", `--dbname=${restored}`, file])
  world.useRestored(restored)
  for (const replica of replicas) {
    replica.start()
    await replica.ready()
  }
  await alerts.clears("TollkeeperDown")
  for (const one of pending) await settledInTheEnd(world, one)

  // A payer that paid after the backup sends again, and receives the same transaction.
  let adopted = 0
  for (const { body, transaction } of unknown) {
    const answer = await traffic.ended(body)
    if (answer.transaction !== transaction)
      throw new Error(`paid by ${transaction}, and after the restore ${answer.errorReason} ${answer.transaction}`)
    adopted += 1
  }
  traffic.resume()
  await traffic.more(6)
  return (
    `${pending.length} in flight in the dump settled after it was restored, ${adopted} that it does not know were ` +
    `found on the ledger and answered with the same transaction; ${fired}`
  )
}
