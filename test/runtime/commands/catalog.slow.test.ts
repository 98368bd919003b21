import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, FileSystem, Option } from "effect"
import { execFile } from "node:child_process"
import process from "node:process"
import { promisify } from "node:util"
import { root } from "../../architecture/sources.ts"
import { databaseAt } from "../../../runtime/serve.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { declaring, verified } from "../../plugins/catalog/support.ts"

const run = promisify(execFile)

it.live(
  "tollkeeper catalog moves a listing and explains it, over a stopped facilitator's database [S317]",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const state = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-catalog-" })
        const url = "https://shop.example.com/item"
        yield* Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({
              database: databaseAt(
                { name: "local", secret: Option.none, tree: { database: { embedded_folder: "database" } } },
                state
              ),
              set: ["catalog_security.probe_origins=false"]
            })
            yield* verified(
              facilitator,
              yield* declaring(facilitator, {
                payer: yield* facilitator.account(),
                payTo: (yield* facilitator.account()).publicKey(),
                url
              })
            )
            yield* facilitator.stop
          })
        )
        const catalog = (...args: ReadonlyArray<string>) =>
          Effect.promise(() =>
            run(
              process.execPath,
              ["--disable-warning=ExperimentalWarning", "runtime/cli.ts", "catalog", ...args, "--state", state],
              { cwd: root, env: { ...process.env, DATABASE_URL: "" } }
            ).then(
              ({ stdout }) => stdout,
              (error: { stderr: string }) => error.stderr
            )
          )
        expect((yield* catalog("remove", url, "--note", "spam")).trim()).toBe(`${url}: active → removed`)
        const reported = JSON.parse(yield* catalog("observations", url)) as {
          readonly listings: ReadonlyArray<{
            readonly status: string
            readonly decisions: ReadonlyArray<{ readonly by: string }>
          }>
        }
        expect([reported.listings[0]?.status, reported.listings[0]?.decisions[0]?.by]).toEqual(["removed", "operator"])
        expect((yield* catalog("restore", url)).trim()).toBe(`${url}: removed → active`)
        expect(yield* catalog("remove", "https://nowhere.example.com/")).toContain(
          "there is no listing of https://nowhere.example.com/"
        )
      })
    ).pipe(Effect.provide(NodeServices.layer)),
  240_000
)
