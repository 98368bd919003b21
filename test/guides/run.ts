// `npm run guides`: runs every block of README.md and of the guides as written, each guide in its own environment
// (`README.md` in this folder explains the marks). Arguments name guides: `npm run guides -- seller operator`;
// `--shard=1/4` takes every fourth page, from the first. Prints the number of blocks that ran, and each other block
// with its reason; fails if a block contradicts its guide.
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import process from "node:process"
import { root } from "../../runtime/bootstrap.mjs"
import { startPostgres, type TestPostgres } from "../support/postgres.ts"
import { parse } from "yaml"
import { type Block, blocksOf, commandsOf, missingIn } from "./blocks.ts"
import { World } from "./World.ts"

const isShard = (word: string) => word.startsWith("--shard=")
const words = process.argv.slice(2).filter((word) => !isShard(word))
const [share = 1, shares = 1] = (process.argv.find(isShard) ?? "").match(/\d+/g)?.map(Number) ?? []
const guides = join(root, "examples", "guides")
const pages = [
  join(root, "README.md"),
  ...readdirSync(guides)
    .filter((name) => /\.(md|txt)$/.test(name))
    .sort()
    .map((name) => join(guides, name))
]
  .filter(
    (page) => words.length === 0 || words.some((word) => basename(page).toLowerCase().includes(word.toLowerCase()))
  )
  .filter((_, at) => at % shares === share - 1)

let postgres: TestPostgres | undefined
let databases = 0

/** A database for the guide; the same name is the same database within the guide. */
const databasesOf = () => {
  const known = new Map<string, string>()
  return async (name: string): Promise<string> => {
    postgres ??= await startPostgres()
    const { url } = postgres
    if (!known.has(name)) {
      const own = `guide_${process.pid}_${databases++}`
      const create = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`create database ${sql(own)}`.unprepared)
      const client = PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })
      await Effect.runPromise(Effect.scoped(create.pipe(Effect.provide(client))))
      const at = new URL(url)
      at.pathname = `/${own}`
      known.set(name, at.href)
    }
    return known.get(name)!
  }
}

/** Runs or skips a block; throws if it contradicts the guide. */
const play = async (world: World, block: Block): Promise<"run" | { readonly notRun: string }> => {
  switch (block.kind) {
    case "invalid":
      throw new Error(block.why)
    case "not-run":
      return { notRun: block.why }
    case "drawing":
      return "run"
    case "data":
      if (block.language === "json") JSON.parse(block.text)
      else parse(block.text)
      return "run"
    case "file":
      await world.write(block.name, block.text)
      return "run"
    case "commands": {
      const lacks = world.lacks(block.text)
      if (lacks !== undefined) return { notRun: lacks }
      let output = ""
      for (const step of block.steps) {
        if (step.kind === "run") output += await world.run(step.text)
        else if (step.kind === "leave") await world.leave(step.text, step.url)
        else await world.stop()
      }
      const missing = missingIn(output, block.shows ?? "")
      if (missing.length > 0) throw new Error(`it does not print\n${missing.join("\n")}\nbut\n${output.slice(-3_000)}`)
      return "run"
    }
  }
}

const none = { run: 0, notRun: 0, failed: 0 }

/** The result of a guide. A failure ends it, since later blocks depend on earlier ones. */
const playGuide = async (page: string): Promise<typeof none> => {
  const name = basename(page)
  const blocks = blocksOf(readFileSync(page, "utf8"))
  const startedAt = performance.now()
  const world = await World.open(name.replace(/\W.*/, ""), databasesOf())
  const count = { ...none }
  const paths = new Map<string, { commands: number; millis: number }>()
  try {
    for (const block of blocks) {
      try {
        const begunAt = performance.now()
        const done = await play(world, block)
        const { commands, millis } = paths.get(block.section ?? "") ?? { commands: 0, millis: 0 }
        const took = millis + performance.now() - begunAt
        paths.set(block.section ?? "", { commands: commands + commandsOf(block), millis: took })
        if (done === "run") count.run++
        else {
          count.notRun++
          console.log(`      ${name}:${block.line} not run: ${done.notRun}`)
        }
      } catch (error) {
        count.failed++
        console.log(`FAILED ${name}:${block.line} ${error instanceof Error ? error.message : error}`)
        return count
      }
    }
    return count
  } finally {
    await world.close()
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
    const state = count.failed > 0 ? "FAILED" : "ok    "
    console.log(`${state} ${name}: ${count.run} of ${blocks.length} blocks in ${seconds} s`)
    // A newcomer's commands and waiting times.
    for (const [section, { commands, millis }] of paths)
      if (commands > 0) console.log(`      ${section}: commands ${commands}, minutes ${(millis / 60_000).toFixed(1)}`)
  }
}

/** A shared machine may starve a whole facilitator once; a second failure is a defect. */
const isShared = process.env["CI"] === "true"

const total = { ...none }

try {
  for (const page of pages) {
    const first = await playGuide(page)
    const count = first.failed > 0 && isShared ? await playGuide(page) : first
    for (const key of ["run", "notRun", "failed"] as const) total[key] += count[key]
  }
} finally {
  await postgres?.stop()
}
const kept = `${total.run} blocks of ${pages.length} guides do what they say`
console.log(`${kept}, ${total.notRun} were not run and say why, ${total.failed} failed`)
console.log(`${total.run} passed, ${total.failed} failed, ${total.notRun} skipped`)
process.exitCode = total.failed === 0 && total.run > 0 ? 0 : 1
