// The ledger as a user meets it: as a plugin with its listeners, and standalone.
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, FileSystem, Layer, Option } from "effect"
import * as https from "node:https"
import { type AddressInfo, createServer, type Server } from "node:net"
import { StartupBanner } from "../../../kernel/StartupBanner.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Config, configDefaults } from "../../../plugins/ledger-local/Config.ts"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { plugin } from "../../../plugins/ledger-local/plugin.ts"
import { ledgerOptions, standalone } from "../../../plugins/ledger-local/standalone.ts"
import { ledgerLayer } from "../../../plugins/ledger-local/startLedger.ts"
import { eventually } from "../../support/eventually.ts"
import { freePort } from "../../support/freePort.ts"
import { platform } from "./platform.ts"
import { keypair } from "./support.ts"

const call = (url: string, method: string, params: unknown = {}) =>
  Effect.promise(async () => {
    const response = await fetch(url, {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
    })
    return (await response.json()) as { readonly result: any; readonly error?: { readonly code: number } }
  })

/** Another program listening on a port. */
const otherProgram = Effect.callback<Server>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
})

const close = (server: Server) => Effect.sync(() => void server.close())

/** Trusts only the certificate in `file`, by the name a client would use. */
const overTls = (port: number, ca: string, servername: string) =>
  Effect.callback<number, Error>((resume) => {
    const request = https.request(
      { host: "127.0.0.1", port, servername, ca, path: "/ledgers?limit=1&order=desc" },
      (response) => {
        response.resume()
        resume(Effect.succeed(response.statusCode ?? 0))
      }
    )
    request.on("error", (error) => resume(Effect.fail(error)))
    request.end()
  })

describe("the embedded ledger as a plugin", () => {
  it.live(
    "serves HTTP, and HTTPS under Horizon's name with its own certificate",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* files.makeTempDirectoryScoped()
        const [port, httpsPort] = [yield* Effect.promise(freePort), yield* Effect.promise(freePort)]
        const settings = Settings.layerTest(
          { local_ledger: { port, https_port: httpsPort, close_interval_ms: 50 } },
          () => Option.none()
        )
        const host = Layer.succeed(Host, { name: "test", stateFolder: folder })
        yield* Layer.build(plugin.layer.pipe(Layer.provide([settings, host, StartupBanner.layer])))
        const url = `http://127.0.0.1:${port}`
        expect((yield* call(url, "getHealth")).result.status).toBe("healthy")
        expect((yield* call(`${url}/rpc`, "getNetwork")).result.friendbotUrl).toBe(`${url}/friendbot`)
        const before = (yield* call(url, "getLatestLedger")).result.sequence
        yield* Effect.repeat(call(url, "getLatestLedger"), { until: ({ result }) => result.sequence > before })
        const certificate = `${folder}/ledger/ledger-cert.pem`
        yield* Effect.repeat(files.exists(certificate), { until: (exists) => exists })
        const ca = yield* files.readFileString(certificate)
        yield* Effect.retry(overTls(httpsPort, ca, "localhost"), {
          while: (error) => error.message.includes("ECONNREFUSED")
        })
        for (const name of ["localhost", "horizon-testnet.stellar.org"])
          expect(yield* overTls(httpsPort, ca, name)).toBe(200)
        expect(Exit.isFailure(yield* Effect.exit(overTls(httpsPort, ca, "example.com")))).toBe(true)
      }).pipe(Effect.scoped, Effect.provide(platform)),
    240_000
  )

  it.live("names no HTTPS address where its port belongs to another program", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const [port, taken] = [yield* Effect.promise(freePort), yield* Effect.acquireRelease(otherProgram, close)]
      const { port: httpsPort } = taken.address() as AddressInfo
      const settings = Settings.layerTest({ local_ledger: { port, https_port: httpsPort } }, () => Option.none())
      const host = Layer.succeed(Host, { name: "test", stateFolder: folder })
      const services = yield* Layer.build(
        plugin.layer.pipe(Layer.provide([settings, host]), Layer.provideMerge(StartupBanner.layer))
      )
      const where = Effect.map(Context.get(services, StartupBanner).read, ({ lines }) =>
        lines.flatMap(({ where }) => where)
      )
      const reported = yield* eventually(where, (where) => where.some((line) => line.startsWith("no HTTPS")))
      expect(reported.join("\n")).not.toContain("https://")
      expect(reported.at(-1)).toContain(`port ${httpsPort} is taken`)
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("keeps closed ledgers across a restart on the same folder", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const address = keypair("survivor").publicKey()
      const first = yield* Effect.gen(function* () {
        const ledger = yield* LocalLedger
        const funded = yield* ledger.fund(address, { usdcUnits: 5n })
        yield* ledger.closeMany(3)
        return { funded: funded!, latest: yield* ledger.call("getLatestLedger") }
      }).pipe(Effect.provide(LocalLedger.layer({}, folder)))
      yield* Effect.gen(function* () {
        const ledger = yield* LocalLedger
        expect((yield* ledger.call("getLatestLedger")).id).toBe(first.latest.id)
        const found = yield* ledger.call("getTransaction", { hash: first.funded.hash })
        expect(found.status).toBe("SUCCESS")
        expect(found.oldestLedger).toBe(1_000)
        yield* ledger.fund(address)
        expect((yield* ledger.call("getLatestLedger")).sequence).toBe(first.latest.sequence + 1)
      }).pipe(Effect.provide(LocalLedger.layer({}, folder)))
    }).pipe(Effect.scoped, Effect.provide(platform))
  )
})

describe("tollkeeper ledger", () => {
  it.live("runs in memory with seeded accounts and refuses an invalid fault", () =>
    Effect.gen(function* () {
      const running = yield* standalone({
        port: 0,
        close: "manual",
        seedAccounts: true,
        faults: ["rpc=getFeeStats:503"]
      })
      expect(running.accounts.map(({ name }) => name)).toEqual(["buyer", "seller", "agent", "merchant"])
      expect((yield* call(running.url, "getLatestLedger")).result.sequence).toBe(1_004)
      const broken = yield* Effect.promise(() =>
        fetch(running.url, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getFeeStats" }) })
      )
      expect(broken.status).toBe(503)
      const refused = yield* Effect.flip(standalone({ port: 0, faults: ["rain=1"] }))
      expect(refused).toMatchObject({ _tag: "FaultRefused", fault: "rain=1" })
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("limits contract time as configured, and not where ledgers must be reproducible", () =>
    Effect.gen(function* () {
      const config = { ...configDefaults, closeMillisMax: 30 }
      const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
      const alone = LocalLedger.layerTest(ledgerOptions({}, config))
      for (const layer of [alone, ledgerLayer(config, folder)]) {
        const { ledger } = Context.get(yield* Layer.build(layer), LocalLedger)
        expect(ledger.options.closeTime!.millis).toBe(30)
      }
      const read = (section: Record<string, unknown>) =>
        Effect.provide(
          Config,
          Config.layer.pipe(Layer.provide(Settings.layerTest({ local_ledger: section }, () => Option.none())))
        )
      expect((yield* read({ contract_time_ms: 40 })).closeMillisMax).toBe(40)
      expect((yield* read({})).closeMillisMax).toBeUndefined()
      expect((yield* read({ contract_time_ms: 40, close: "manual" })).closeMillisMax).toBeUndefined()
      const refused = [{ close: "manual" as const }, { seed: "word" }, { startTime: 1n }]
      for (const options of refused)
        expect(yield* Effect.flip(standalone({ port: 0, closeMillisMax: 5, ...options }))).toMatchObject({
          _tag: "ChoiceRefused",
          message: expect.stringContaining("only where the clock closes ledgers")
        })
    }).pipe(Effect.scoped, Effect.provide(platform))
  )
})
