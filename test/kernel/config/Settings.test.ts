import { expect, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { Limits } from "../../../kernel/config/Limits.ts"
import { headersFor } from "../../../kernel/config/rpcHeaders.ts"
import { Network, networksSection } from "../../../kernel/config/Network.ts"
import * as Setting from "../../../kernel/config/Setting.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { gather } from "../../../kernel/config/gather.ts"
import { type Declaration, networkKeys } from "../../../kernel/config/NetworkKeys.ts"
import { CurrentPlugin } from "../../../kernel/contract/Contract.ts"

const sample = Setting.section("sample", "For this test.", {
  wait_ms: Setting.integer({ default: 5, min: 1, max: 9, unit: "ms" }, "A wait."),
  budget: Setting.amount({ default: "170141183460469231731687303715884105727", doc: "A budget." })
})
const costs = Setting.section("costs", "For this test.", {
  day: Setting.stroops({ default: 7, doc: "A bound." }),
  by_key: Setting.stroopsByName({ doc: "Bounds by key." })
})

const read = <A>(section: Setting.Section<A>, tree: Record<string, unknown>) =>
  Effect.flatMap(Settings, (settings) => settings.section(section)).pipe(
    Effect.provide(
      Settings.layer({ tree, secret: () => Option.none() }, () =>
        gather([{ id: "sample-plugin", settings: [sample, costs] }])
      )
    )
  )

it.effect("an absent section has its defaults; money is a bigint [S12]", () =>
  Effect.gen(function* () {
    expect(yield* read(sample, {})).toEqual({ wait_ms: 5, budget: 170141183460469231731687303715884105727n })
    expect(yield* read(sample, { sample: { budget: "0" } })).toEqual({ wait_ms: 5, budget: 0n })
  })
)

it.effect("refuses stroops that the database's integers cannot hold", () =>
  Effect.gen(function* () {
    const most = "999999999999999999"
    expect(yield* read(costs, { costs: { day: most, by_key: { shop: most } } })).toEqual({
      day: 999_999_999_999_999_999n,
      by_key: { shop: 999_999_999_999_999_999n }
    })
    for (const [path, values] of Object.entries({
      "costs.day": { day: `${most}0` },
      "costs.by_key.shop": { by_key: { shop: "170141183460469231731687303715884105727" } }
    }))
      expect((yield* Effect.flip(read(costs, { costs: values }))).path).toBe(path)
  })
)

it.effect("refuses out-of-range values, misspelled keys, float money and unknown sections by path", () =>
  Effect.gen(function* () {
    const refusal = (tree: Record<string, unknown>) =>
      Effect.map(Effect.flip(read(sample, tree)), (error) => `${error.path} ${error.message}`)
    expect(yield* refusal({ sample: { wait_ms: 10 } })).toMatch(/^sample\.wait_ms expected/)
    expect(yield* refusal({ sample: { budget: 1.5 } })).toMatch(/^sample\.budget expected/)
    expect(yield* refusal({ sample: { budget: "-1" } })).toMatch(/^sample\.budget expected/)
    expect(yield* refusal({ sample: { wait: 1 } })).toBe("sample.wait no such setting; did you mean wait_ms?")
    expect(yield* refusal({ sample: { waiting_room: 1 } })).toBe("sample.waiting_room no such setting")
    expect(yield* refusal({ sampel: {} })).toBe("sampel no such section; did you mean sample?")
  })
)

it.effect("an origin is as a browser sends it, or is refused at the start", () =>
  Effect.gen(function* () {
    const pages = Setting.section("sample", "For this test.", { pages: Setting.origins({ doc: "Pages." }) })
    const given = (...list: ReadonlyArray<unknown>) => read(pages, { sample: { pages: list } })
    const right = [
      ...["https://shop.example", "HTTPS://Shop.Example", "http://localhost:3000", "http://[::1]:8080"],
      "chrome-extension://abcdef"
    ]
    expect(yield* given(...right)).toEqual({ pages: right })
    expect(yield* read(pages, {})).toEqual({ pages: [] })
    for (const wrong of [
      "https://shop.example/",
      "https://shop.example:443",
      "shop.example",
      "*",
      "https://*.example",
      "null",
      ""
    ])
      expect([wrong, (yield* Effect.flip(given(wrong))).message]).toEqual([
        wrong,
        expect.stringMatching(/^expected an origin such as https:\/\/shop\.example, without a path/)
      ])
  })
)

it.effect("a proxy that is neither address nor range is refused at start", () =>
  Effect.gen(function* () {
    const proxies = Setting.section("sample", "For this test.", { proxies: Setting.ranges({ doc: "Proxies." }) })
    const given = (...list: ReadonlyArray<string>) => read(proxies, { sample: { proxies: list } })
    const right = ["127.0.0.1", "::1", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32"]
    expect(yield* given(...right)).toEqual({ proxies: right })
    for (const wrong of ["10.0.0.0/", "10.0.0.0/33", "proxy", "10.0.0.1:80", "10.0.0.0 /8", ""]) {
      const { message, path } = yield* Effect.flip(given("127.0.0.1", wrong))
      expect([wrong, path, message]).toEqual([
        wrong,
        "sample.proxies[1]",
        expect.stringMatching(/^expected an IP address, or a range such as 10\.0\.0\.0\/8/)
      ])
    }
  })
)

it.effect("reports every issue of a section, with suggestions for nested network keys", () =>
  Effect.gen(function* () {
    const { message, path } = yield* Effect.flip(
      read(networksSection([]), {
        networks: { "ledger:testnet": { chanel_count: 3, assets: [{ contract: 1, symbl: "X" }] } }
      })
    )
    expect(path).toBe("networks.ledger:testnet.chanel_count")
    expect(message).toMatch(/^no such setting; did you mean channel_count\?/)
    expect(message).toContain("networks.ledger:testnet.assets[0].symbl: no such setting; did you mean symbol?")
    expect(message).toContain("networks.ledger:testnet.assets[0].contract: expected")
  })
)

it.effect("a section has one owner: a second claim is refused at boot", () =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const as = (plugin: string) => settings.section(sample).pipe(Effect.provideService(CurrentPlugin, plugin))
    yield* as("one")
    yield* as("one")
    expect(yield* Effect.flip(as("two"))).toMatchObject({ path: "sample", message: "belongs to one, claimed by two" })
  }).pipe(Effect.provide(Settings.layerTest()))
)

it("declaring a section or network key twice throws", () => {
  const keys = networkKeys("x402-later", { later_limit: Setting.optionalText({ doc: "" }) })
  const declaring = (id: string, ...settings: ReadonlyArray<Declaration>) => ({ id, settings })
  expect(() => gather([declaring("a", sample), declaring("b", sample)])).toThrow("declared twice, last by b")
  expect(() => gather([declaring("a", keys), declaring("b", { ...keys, owner: "b" })])).toThrow("contributed by b")
  const own = networkKeys("x402-own", { rpc_urls: Setting.optionalText({ doc: "" }) })
  expect(() => gather([declaring("x402-own", own)])).toThrow("rpc_urls is already contributed by x402-own")
  expect([...gather([{ id: "c" }, declaring("a", sample, keys)]).sections.keys()]).toEqual(["sample", "networks"])
})

it.effect("refuses a section that no plugin declares", () =>
  Effect.gen(function* () {
    const settings = Settings.layer({ tree: {}, secret: () => Option.none() }, () => gather([]))
    const claimed = Effect.flatMap(Settings, (settings) => settings.section(sample)).pipe(
      Effect.provideService(CurrentPlugin, "late"),
      Effect.provide(settings)
    )
    expect((yield* Effect.flip(claimed)).message).toBe("claimed by late, but not declared in any plugin's settings")
  })
)

const network = (values: Record<string, unknown>, secrets: Record<string, string> = {}) =>
  Effect.flatMap(Effect.service(Network), Effect.succeed).pipe(
    Effect.provide(
      Network.layer.pipe(
        Layer.provide(
          Settings.layerTest({ networks: values }, (name) =>
            Option.map(Option.fromUndefinedOr(secrets[name]), (s) => Redacted.make(s))
          )
        )
      )
    )
  )

it.effect("refuses no network, two networks and an unknown one [S29]", () =>
  Effect.gen(function* () {
    const enabled = { enabled: true, rpc_urls: ["http://127.0.0.1:1"] }
    const message = (values: Record<string, unknown>) =>
      Effect.map(Effect.flip(network(values)), (error) => error.message)
    expect(yield* message({ "ledger:testnet": enabled, "ledger:pubnet": enabled })).toContain("one network")
    expect(yield* message({})).toBe("no network is enabled")
    expect(yield* message({ "ledger:moon": enabled })).toContain("no such network")
    expect(yield* message({ "ledger:testnet": { enabled: true } })).toContain("RPC endpoint")
  })
)

it.effect("refuses a balance of channels that the ledger does not accept", () =>
  Effect.gen(function* () {
    const withBalance = (channel_min_balance_stroops: number) =>
      network({ "ledger:testnet": { enabled: true, rpc_urls: ["http://127.0.0.1:1"], channel_min_balance_stroops } })
    expect((yield* withBalance(10_000_000)).channelBalanceStroopsMin).toBe(10_000_000n)
    const { message, path } = yield* Effect.flip(withBalance(5))
    expect(path).toBe("networks.ledger:testnet.channel_min_balance_stroops")
    expect(message).toContain("10000000 stroops (1 XLM)")
  })
)

it.effect("reads decimals per asset and fee ceilings per scheme [S13]", () =>
  Effect.gen(function* () {
    const contract = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
    const values = yield* network(
      {
        "ledger:testnet": {
          enabled: true,
          rpc_urls: ["http://127.0.0.1:1"],
          assets: [{ contract, symbol: "USDC", decimals: 6 }],
          fees: { fixed: { max_resource_fee_stroops: 7 } }
        }
      },
      { SPONSOR_SECRET: "S123" }
    )
    expect(values.assets.get(contract)?.decimals).toBe(6)
    expect(values.feeCeilings("fixed")).toEqual({
      resourceStroopsMax: 7n,
      inclusionStroopsMax: 10_000n,
      totalStroopsMax: 210_000n
    })
    expect(values.feeCeilings("other").resourceStroopsMax).toBe(200_000n)
    expect(String(values.sponsorSecret)).not.toContain("S123")
  })
)

it.effect("payment limits have the decided defaults [S299, S300, S332]", () =>
  Effect.gen(function* () {
    const limits = yield* Limits
    expect(limits.settleTimeout).toMatchObject({ value: { millis: 25_000 } })
    expect(limits.pendingSettlementsMax).toBe(1_000)
    expect(limits.sponsoredPerPrincipalPerDayStroopsMax).toBe(5_000_000n)
    expect(limits.sponsoredPerDayStroopsMax).toBe(200_000_000n)
    expect(limits.expiryToleranceLedgers).toBe(4)
  }).pipe(Effect.provide(Limits.layer.pipe(Layer.provide(Settings.layerTest()))))
)

it.effect("reads RPC endpoints and headers from the environment without quoting them", () =>
  Effect.gen(function* () {
    const enabled = { enabled: true, rpc_headers_env: "RPC_HEADERS" }
    const given = yield* network(
      { "ledger:testnet": enabled },
      { RPC_URLS: "https://a.example/key-1, http://b.example", RPC_HEADERS: "X-Key: one\n@b.example x-other: two" }
    )
    expect(given.rpcUrls).toEqual(["https://a.example/key-1", "http://b.example"])
    expect(headersFor(given.rpcHeaders ?? [], "https://a.example/key-1")).toEqual({ "x-key": "one" })
    expect(headersFor(given.rpcHeaders ?? [], "http://b.example")).toEqual({ "x-key": "one", "x-other": "two" })
    const own = yield* network(
      { "ledger:testnet": { ...enabled, rpc_urls: ["http://c.example"] } },
      { RPC_URLS: "http://d" }
    )
    expect(own.rpcUrls).toEqual(["http://c.example"])
    for (const secrets of [
      { RPC_URLS: "ftp://secret.example" },
      { RPC_URLS: "http://c.example", RPC_HEADERS: "no-colon secret" },
      { RPC_URLS: "http://c.example", RPC_HEADERS: "host: secret" }
    ]) {
      const refused = yield* Effect.flip(network({ "ledger:testnet": enabled }, secrets))
      expect(refused.message).toMatch(/endpoint 1 is no|line 1 of RPC_HEADERS is no/)
      expect(refused.message).not.toContain("secret")
    }
  })
)
