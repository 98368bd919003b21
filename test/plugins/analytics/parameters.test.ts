import { Effect } from "effect"
import { NodeServices } from "@effect/platform-node"
import { it as effectIt } from "@effect/vitest"
import { describe, expect, it } from "vitest"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Config } from "../../../plugins/analytics/Config.ts"
import { amountsOf, byAsset, mainAsset } from "../../../plugins/analytics/reports/Amounts.ts"
import { readQuery } from "../../../kernel/http/readQuery.ts"
import { transactions } from "../../../plugins/analytics/description.ts"
import { readNetworkFilter, readPage, readWindow } from "../../../plugins/analytics/reports/parameters.ts"
import { loadProfile } from "../../../runtime/profile.ts"
import { declaredSettings } from "../../../runtime/App.ts"

const noon = Date.UTC(2026, 0, 31, 12)
const config = { redactAddresses: false, pageDefault: 50, pageMax: 200 }
const readerOf = (query: string) => readQuery(transactions.query, new URLSearchParams(query))
const windowOf = (query: string, absent: 0 | 30 = 30) => readWindow(readerOf(query), noon, absent)

describe("the parameters of analytics", () => {
  it("days accepts 0, 1, 7, 14 and 30, and defaults to 30 [S134]", () => {
    expect(windowOf("days=0")).toEqual({ days: 0, since: undefined })
    expect(windowOf("days=1")).toEqual({ days: 1, since: new Date("2026-01-30T00:00:00Z") })
    expect(windowOf("days=30")).toEqual({ days: 30, since: new Date("2026-01-01T00:00:00Z") })
    for (const query of ["days=2", "days=-7", "days=07", "days=7.0", "days=", "days=all", ""])
      expect(windowOf(query).days).toBe(30)
    expect(windowOf("", 0)).toEqual({ days: 0, since: undefined })
    expect(windowOf("days=3", 0).days).toBe(30)
  })

  it("page sizes are clamped between one item and the maximum [S135, S298]", () => {
    const page = (query: string) => readPage(readerOf(query), config)
    expect(page("")).toEqual({ limit: 50, offset: 0 })
    expect(page("limit=0")).toEqual({ limit: 1, offset: 0 })
    expect(page("limit=999999999&offset=7")).toEqual({ limit: 200, offset: 7 })
  })

  it("each invalid setting is reported in its own sentence [S329]", () => {
    const reader = readerOf("limit=-1&offset=1e3&payer=G1&status=open&network=stellar:testnet")
    readPage(reader, config)
    reader.given("payer")
    reader.given("status")
    expect(readNetworkFilter(reader)).toBe("ledger:testnet")
    expect(reader.issues.map((error) => error.split(":")[0])).toEqual(["limit", "offset", "payer", "status"])
  })
})

describe("amounts", () => {
  const sums = [
    { asset: "CB", transactions: 1n, amount: 900n },
    { asset: "CA", transactions: 1n, amount: 5n },
    { asset: "CB", transactions: 1n, amount: 10n ** 30n },
    { asset: "CC", transactions: 0n, amount: 0n }
  ]

  it("amounts are summed within one asset and never across assets [S141]", () => {
    expect(byAsset(sums)).toEqual([
      { asset: "CB", transactions: 2n, amount: 900n + 10n ** 30n },
      { asset: "CA", transactions: 1n, amount: 5n }
    ])
    expect(mainAsset(sums, undefined)).toBe("CB")
    expect(mainAsset([], undefined)).toBe(undefined)
    const { report } = amountsOf(new Map([["CA", { contract: "CA", symbol: "AAA", decimals: 6, paymentMax: 1n }]]))
    expect(report(sums, "CA")).toMatchObject({ total_amount: "5", asset: "CA", asset_symbol: "AAA", asset_decimals: 6 })
    expect(report(sums, "CB")).toMatchObject({
      total_amount: "1000000000000000000000000000900",
      asset_symbol: null,
      asset_decimals: null
    })
    expect(report(sums, "CZ")).toMatchObject({ total_amount: "0", asset: "CZ" })
    expect(report([], undefined)).toEqual({
      total_amount: "0",
      asset: null,
      asset_symbol: null,
      asset_decimals: null,
      amounts: []
    })
  })
})

describe("the settings of analytics", () => {
  const settingsOf = (set: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const profile = yield* loadProfile("hosted", set, {})
      expect(profile.plugins).toContain("analytics")
      return yield* Config.pipe(
        Effect.provide(Config.layer),
        Effect.provide(Settings.layer(profile, () => declaredSettings(profile)))
      )
    }).pipe(Effect.provide(NodeServices.layer))

  effectIt.effect("analytics settings follow the contract; the hosted profile shows addresses [S27, S297, S298]", () =>
    Effect.gen(function* () {
      const keepMillis = 3_650 * 86_400_000
      expect(yield* settingsOf([])).toEqual({ redactAddresses: false, pageDefault: 50, pageMax: 200, keepMillis })
      expect(
        yield* settingsOf([
          "analytics.redact_addresses=true",
          "analytics.default_page_size=5",
          "analytics.max_page_size=7",
          "analytics.keep_days=30"
        ])
      ).toEqual({ redactAddresses: true, pageDefault: 5, pageMax: 7, keepMillis: 30 * 86_400_000 })
      for (const wrong of [
        "analytics.default_page_size=0",
        "analytics.max_page_size=100000",
        "analytics.default_page_size=201",
        "analytics.redacted=true"
      ]) {
        expect(yield* Effect.flip(settingsOf([wrong]))).toMatchObject({ _tag: "SettingsRefused" })
      }
    })
  )
})
