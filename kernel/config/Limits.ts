// The limits of settlement, sponsorship and the ledger's RPC. Every wait, queue and budget of the payment path is here.
import { Context, Duration, Effect, Layer } from "effect"
import { integer, section, stroops, stroopsByName } from "./Setting.ts"
import { Settings } from "./Settings.ts"

export const limitsSection = section("limits", "Bounds of the payment path.", {
  settle_timeout_ms: integer(
    { default: 25_000, min: 1_000, max: 28_000, unit: "ms" },
    "Maximum time /settle waits for confirmation."
  ),
  settle_poll_ms: integer(
    { default: 500, min: 50, max: 10_000, unit: "ms" },
    "Maximum time between two polls of an open settlement."
  ),
  recovery_ms: integer({ default: 15_000, min: 1_000, max: 300_000, unit: "ms" }, "Interval of the recovery loop."),
  rpc_timeout_ms: integer({ default: 5_000, min: 100, max: 60_000, unit: "ms" }, "Timeout of one RPC call."),
  channel_lease_ms: integer(
    { default: 5_000, min: 500, max: 60_000, unit: "ms" },
    "Lifetime of a channel lease that does not become a hold."
  ),
  channel_wait_ms: integer(
    { default: 0, min: 0, max: 20_000, unit: "ms" },
    "Maximum wait for a free channel; 0 means one close interval + 3 000."
  ),
  max_pending_settlements: integer(
    { default: 1_000, min: 1, max: 1_000_000 },
    "Maximum number of open settlements; beyond it settle answers busy."
  ),
  max_sponsored_stroops_per_key_per_day: stroops({
    default: 5_000_000,
    doc: "Network fees sponsored for one principal per UTC day of the ledger, in stroops; about 200 payments of USDC."
  }),
  max_sponsored_stroops_per_day_by_key: stroopsByName({
    doc: "The same for principals with their own limit, by key label."
  }),
  max_global_sponsored_stroops_per_day: stroops({
    default: 200_000_000,
    doc: "The same for all principals together, about 8 000 payments of USDC; half is reserved for keyed principals."
  }),
  expiry_tolerance_ledgers: integer(
    { default: 4, min: 0, max: 100, unit: "ledgers" },
    "Ledgers by which an authorization may exceed its timeout."
  ),
  verify_per_second: integer(
    { default: 50, min: 0, max: 100_000 },
    "Verify requests per principal and second, with bursts of twice that; 0 means no limit. A list of channels' " +
      "claims counts as a request for each eight."
  ),
  settle_per_second: integer(
    { default: 20, min: 0, max: 100_000 },
    "Settle requests per principal and second, with bursts of twice that; 0 means no limit. A list of channels' " +
      "claims counts as a request for each eight."
  )
})

export interface LimitValues {
  readonly settleTimeout: Duration.Duration
  readonly settlePoll: Duration.Duration
  readonly recoveryPeriod: Duration.Duration
  readonly rpcTimeout: Duration.Duration
  readonly channelLease: Duration.Duration
  /** Absent: one close interval of the ledger + 3 s. */
  readonly channelWait: Duration.Duration | undefined
  readonly pendingSettlementsMax: number
  readonly sponsoredPerPrincipalPerDayStroopsMax: bigint
  /** By principal (`key:label`); replaces the general bound. */
  readonly sponsoredByKeyPerDayStroopsMax?: ReadonlyMap<string, bigint> | undefined
  readonly sponsoredPerDayStroopsMax: bigint
  readonly expiryToleranceLedgers: number
  /** 0 means no limit. */
  readonly verifyPerSecond: number
  /** 0 means no limit. */
  readonly settlePerSecond: number
}

/** A process has one object, and `LiveLimits` changes its members: read a member at the point of use. */
export class Limits extends Context.Service<Limits, LimitValues>()("tollkeeper/config/Limits") {
  static readonly layer = Layer.effect(
    Limits,
    Effect.gen(function* () {
      const values = yield* (yield* Settings).section(limitsSection)
      return Limits.of({
        settleTimeout: Duration.millis(values.settle_timeout_ms),
        settlePoll: Duration.millis(values.settle_poll_ms),
        recoveryPeriod: Duration.millis(values.recovery_ms),
        rpcTimeout: Duration.millis(values.rpc_timeout_ms),
        channelLease: Duration.millis(values.channel_lease_ms),
        channelWait: values.channel_wait_ms === 0 ? undefined : Duration.millis(values.channel_wait_ms),
        pendingSettlementsMax: values.max_pending_settlements,
        sponsoredPerPrincipalPerDayStroopsMax: values.max_sponsored_stroops_per_key_per_day,
        sponsoredByKeyPerDayStroopsMax: new Map(
          Object.entries(values.max_sponsored_stroops_per_day_by_key).map(([label, max]) => [`key:${label}`, max])
        ),
        sponsoredPerDayStroopsMax: values.max_global_sponsored_stroops_per_day,
        expiryToleranceLedgers: values.expiry_tolerance_ledgers,
        verifyPerSecond: values.verify_per_second,
        settlePerSecond: values.settle_per_second
      })
    })
  )
}
