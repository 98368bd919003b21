// `npm run bench -- hostile-day`: 10,000 spam declarations by 500 free payers, together with 50 honest sellers. Prints
// the outcome of each, and then the same over HTTP in a sample. The bar: every honest listing is right, found, and
// within its quota, and no honest declaration was refused.
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Facts } from "../../kernel/facts/Facts.ts"
import { Supervisor } from "../../kernel/actor/Supervisor.ts"
import { hostileDay } from "../plugins/catalog/hostileDay.ts"
import { databaseLayer } from "../support/databases.ts"
import { hostileHttp } from "./hostileHttp.ts"

/** The same over HTTP, by `payers` payers of twenty declarations each (`npm run bench -- hostile-day 500` for all). */
const overHttp = async (payers: number): Promise<boolean> => {
  const { cpuOfSpam, honest, spam } = await hostileHttp(payers, 10)
  const reported = Object.entries(spam).map(([word, count]) => `${count} ${word}`)
  console.log(`over HTTP, ${payers} free payers of 20 declarations each: ${reported.join(", ")}`)
  console.log(
    `over HTTP, ${honest.sellers} honest sellers: ${honest.right} right by their origin, ${honest.first} on the ` +
      `first page of browsing, ${honest.refused} declarations refused`
  )
  for (const one of honest.wrong) console.log(`over HTTP, not right in ten seconds: ${one}`)
  console.log(`over HTTP, CPU ${cpuOfSpam.toFixed(1)} ms a spam verify, client, ledger and database included`)
  return honest.refused === 0 && honest.right === honest.sellers && honest.first === honest.sellers
}

export const bench = async (): Promise<boolean> => {
  const services = Facts.layer.pipe(
    Layer.provideMerge(databaseLayer("pglite", ["kernel", "catalog"])),
    Layer.provideMerge(Supervisor.layer)
  )
  const started = process.cpuUsage()
  const { figures } = await Effect.runPromise(
    hostileDay({ payers: 500, spam: 10_000, sellers: 50 }).pipe(
      Effect.provide(TestClock.layer()),
      Effect.scoped,
      Effect.provide(services)
    )
  )
  const { honest, rows, spam } = figures
  const { system, user } = process.cpuUsage(started)
  console.log(`spam: ${spam.declared} declared, ${spam.listed} listed, ${spam.held} held, ${spam.rejected} rejected`)
  console.log(`honest: ${honest.sellers} sellers, ${honest.right} right, ${honest.found} found`)
  console.log(`honest: ${honest.refused} declarations refused, ${honest.withinQuota} sellers within their quota`)
  console.log(`a free payer leaves ${rows.ofOnePayer} rows of ${rows.all}`)
  console.log(`CPU ${((user + system) / 1_000 / spam.declared).toFixed(2)} ms a declaration, the database's included`)
  const { sellers } = honest
  const isHttpRight = await overHttp(Number(process.argv[3] ?? 25))
  return (
    isHttpRight &&
    honest.refused === 0 &&
    [honest.right, honest.found, honest.withinQuota].every((one) => one === sellers)
  )
}
