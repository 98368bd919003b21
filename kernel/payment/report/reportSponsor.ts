// Readiness of the sponsor: its balance and the spendable part of it, the channels, and the oldest settlement without
// an outcome. Degraded while an offered scheme could not be settled; checked without traffic too, so that the warning
// comes before the first payment is refused (rules 2).
import { Duration, Effect, Option } from "effect"
import { reconciler } from "../../actor/Actor.ts"
import { Health, type HealthReport } from "../../health/Health.ts"
import { Sponsor } from "../../settlement/sponsor/Sponsor.ts"
import { spendable, type SponsorStatus } from "../../settlement/sponsor/sponsorProblem.ts"
import { measure } from "../../telemetry/Measure.ts"
import { settling } from "../../telemetry/metrics.ts"
import { Schemes } from "../Scheme.ts"

const every = Duration.seconds(5)

const figuresOf = (status: SponsorStatus): NonNullable<HealthReport["figures"]> => ({
  sponsorBalanceStroops: status.account?.balanceStroops.toString() ?? null,
  sponsorSpendableStroops: spendable(status).toString(),
  channelsReady: status.channelsReady,
  channelsUsable: status.channelsUsable,
  channelBalanceStroopsLeast: status.channelStroopsLeast?.toString() ?? null,
  oldestOpenSettlementSeconds: status.oldestOpenSeconds === undefined ? null : Math.floor(status.oldestOpenSeconds)
})

/** Watches and reports while the Scope lives. */
export const reportSponsor = Effect.gen(function* () {
  const health = yield* Health
  const sponsor = yield* Sponsor
  const schemes = yield* Schemes
  const errors = Effect.map(
    Effect.suspend(() =>
      Effect.forEach(schemes.all(), ({ scheme }) =>
        Effect.tap(sponsor.problem(scheme), (error) =>
          measure(settling.available, Option.isNone(error) ? 1 : 0, { scheme })
        )
      )
    ),
    (unable) => [...new Set(unable.flatMap((failure) => Option.toArray(failure)))]
  )
  const report = Effect.gen(function* () {
    const [found, status] = [yield* errors, yield* sponsor.status]
    return {
      state: found.length === 0 ? "ready" : "degraded",
      ...(found.length === 0 ? {} : { detail: found.join("; ") }),
      ...(Option.isNone(status) ? {} : { figures: figuresOf(status.value) })
    } satisfies HealthReport
  })
  yield* health.register("ledger", report)
  yield* reconciler({ id: "sponsor-watch", every, turn: Effect.asVoid(errors) })
})
