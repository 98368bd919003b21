// The listening addresses of `tollkeeper start`.
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Option } from "effect"
import { NodeServices } from "@effect/platform-node"
import { httpsPortOf, samePort } from "../../../runtime/commands/start.ts"
import { requireNamedDatabase } from "../../../runtime/serve.ts"
import { loadProfile } from "../../../runtime/profile.ts"

it("the ledger's HTTPS port follows its other port unless set", () => {
  const { none, some } = Option
  expect(httpsPortOf(none(), none())).toEqual(none())
  expect(httpsPortOf(none(), some(9_000))).toEqual(some(9_443))
  expect(httpsPortOf(some(8_444), some(9_000))).toEqual(some(8_444))
  expect(httpsPortOf(none(), some(0))).toEqual(some(0))
  expect(httpsPortOf(none(), some(65_200))).toEqual(some(0))
})

it("reports one port for two listeners with both flags", () => {
  const plugins = ["ledger-local"]
  expect(samePort({ plugins, tree: { server: { port: 8_000 } } })).toBe(
    "port 8000 is given to --port and --ledger-port both; choose another with --ledger-port PORT"
  )
  expect(samePort({ plugins, tree: { local_ledger: { port: 4_022 } } })).toMatch(/4022 .*--port and --ledger-port/)
  expect(samePort({ plugins, tree: { server: { port: 9_443 }, local_ledger: { https_port: 9_443 } } })).toMatch(
    /9443 .*--port and --ledger-https-port/
  )
  const everywhere = { server: { port: 9_000, host: "0.0.0.0" }, local_ledger: { port: 9_000 } }
  expect(samePort({ plugins, tree: everywhere })).toMatch(/9000/)
})

it("allows equal ports for free ports, other addresses or no ledger", () => {
  const plugins = ["ledger-local"]
  expect(samePort({ plugins, tree: {} })).toBeUndefined()
  const free = { server: { port: 0 }, local_ledger: { port: 0, https_port: 0 } }
  expect(samePort({ plugins, tree: free })).toBeUndefined()
  const elsewhere = { server: { port: 8_000, host: "192.0.2.1" } }
  expect(samePort({ plugins, tree: elsewhere })).toBeUndefined()
  const unused = { server: { port: 8_443 }, local_ledger: { https: false } }
  expect(samePort({ plugins, tree: unused })).toBeUndefined()
  expect(samePort({ plugins: ["dashboard"], tree: { server: { port: 8_000 } } })).toBeUndefined()
})

it.effect.each(["self-hosted", "hosted"])("refuses %s without a database that was asked for", (name) =>
  Effect.gen(function* () {
    const refusalOf = Effect.fnUntraced(function* (set: ReadonlyArray<string>, variables: Record<string, string>) {
      const exit = yield* Effect.exit(requireNamedDatabase(yield* loadProfile(name, set, variables)))
      return Exit.isFailure(exit) ? JSON.stringify(exit) : undefined
    })
    expect(yield* refusalOf([], {})).toMatch(/names no database: set DATABASE_URL .*embedded_folder=FOLDER/)
    expect(yield* refusalOf(["database.embedded_folder=''"], {})).toBeDefined()
    expect(yield* refusalOf([], { DATABASE_URL: "postgres://localhost/tollkeeper" })).toBeUndefined()
    expect(yield* refusalOf(["database.embedded_folder=/var/lib/tollkeeper/database"], {})).toBeUndefined()
  }).pipe(Effect.provide(NodeServices.layer))
)

it.effect.each(["local", "tools", "tools-hosted"])("starts %s without DATABASE_URL", (name) =>
  Effect.gen(function* () {
    yield* requireNamedDatabase(yield* loadProfile(name, [], {}))
  }).pipe(Effect.provide(NodeServices.layer))
)
