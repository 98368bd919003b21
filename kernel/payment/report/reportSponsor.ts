// What readiness says of who pays the fees: the sponsor's balance and what of it may still be spent, the channels, and
// the oldest settlement without an end. Degraded while a scheme that is offered could not be settled; looked at without
// traffic too, so that it is warned of before the first payment is turned away (decisions 2).
import { Duration, Effect, Option } from "effect"
import { reconciler } from "../../actor/Actor.ts"
import { Health, type HealthReport } from "../../health/Health.ts"
import { Sponsor } from "../../settlement/sponsor/Sponsor.ts"
import { spendable, type SponsorStatus } from "../../settlement/sponsor/sponsorProblem.ts"
import { measure } from "../../telemetry/Measure.ts"
import { settling } from "../../telemetry/metrics.ts"
import { Schemes } from "../Scheme.ts"

const every = Duration.seconds(5)

const figuresOf = (standing: SponsorStatus): NonNullable<HealthReport["figures"]> => ({
  sponsorBalanceStroops: standing.account?.balanceStroops.toString() ?? null,
  sponsorSpendableStroops: spendable(standing).toString(),
  channelsReady: standing.channelsReady,
  channelsUsable: standing.channelsUsable,
  channelBalanceStroopsLeast: standing.channelStroopsLeast?.toString() ?? null,
  oldestOpenSettlementSeconds: standing.oldestOpenSeconds === undefined ? null : Math.floor(standing.oldestOpenSeconds)
})

/** Watches and reports for as long as the Scope lives. */
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
    const [found, standing] = [yield* errors, yield* sponsor.status]
    return {
      state: found.length === 0 ? "ready" : "degraded",
      ...(found.length === 0 ? {} : { detail: found.join("; ") }),
      ...(Option.isNone(standing) ? {} : { figures: figuresOf(standing.value) })
    } satisfies HealthReport
  })
  yield* health.register("ledger", report)
  yield* reconciler({ id: "sponsor-watch", every, turn: Effect.asVoid(errors) })
})
