// `tollkeeper settlements explain`: the history of a payment, by its hash, id or payer. Within a serving process it
// also shows the current ledger.
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { OperatorReports } from "../../kernel/settlement/operators/OperatorReports.ts"
import {
  answer,
  jsonFlag,
  kernelTables,
  type CommandTarget,
  placeFlags,
  databaseStatus,
  Within
} from "./CommandTarget.ts"
import { linesOf, storyOf, type Surroundings } from "./settlementStory.ts"

/** Maximum payments of one payer in one answer, newest first. */
const storiesMax = 5
const address = /^[CG][A-Z2-7]{55}$/

const reportsAt = (place: CommandTarget) =>
  OperatorReports.layer.pipe(
    Layer.provideMerge(databaseStatus(Network.layer.pipe(Layer.provideMerge(kernelTables(place)))))
  )

const newestLedger = Effect.gen(function* () {
  const within = yield* Within
  const clock = within === undefined ? Option.none() : Context.getOption(within.services, LedgerClock)
  return Option.isNone(clock) ? undefined : (yield* clock.value.status).time?.sequence
})

const nothingKnown = (asked: string) => ({
  _tag: "NotFound" as const,
  message:
    `no settlement of ${asked} is recorded here: nothing of it was sent in the last days that are kept ` +
    "(retention.settlement_days). A payment that was refused, or only verified, has no settlement: `tollkeeper " +
    "settlements list --which refused` counts refusals with samples, and the log has one line a request, which names " +
    "payer, reason and trace id"
})

export const explain = Command.make(
  "explain",
  {
    ...placeFlags(),
    json: jsonFlag,
    payment: Argument.String("payment").pipe(
      Argument.withDescription("The hash of any of its transactions, the settlement's id, or the payer's address")
    )
  },
  ({ json, payment, ...place }) =>
    Effect.gen(function* () {
      const reports = yield* OperatorReports
      const { assets } = yield* Network
      const isPayer = address.test(payment)
      const lives = isPayer
        ? yield* reports.livesOf(payment, storiesMax + 1)
        : Option.toArray(yield* reports.life(payment))
      if (lives.length === 0) return yield* Effect.fail(nothingKnown(payment))
      const around: Surroundings = {
        assets,
        newestLedger: yield* newestLedger,
        now: new Date(yield* Clock.currentTimeMillis)
      }
      const stories = lives.slice(0, storiesMax).map((life) => storyOf(life, around))
      const hasMore = lives.length > storiesMax
      yield* answer(json, { stories, hasMore }, [
        ...stories.flatMap((story, index) => (index === 0 ? linesOf(story) : ["", ...linesOf(story)])),
        ...(hasMore ? ["", `these are the newest ${storiesMax}; name an older one by its hash`] : [])
      ])
    }).pipe(Effect.provide(reportsAt(place)))
).pipe(Command.withDescription("Explain a payment, from its verification to its outcome, and what can be done"))
